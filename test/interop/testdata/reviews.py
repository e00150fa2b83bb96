"""Answers reviews of admission as genuine Kopf does: a list of cases comes in, a list of what came out goes out."""
import asyncio
import json
import logging
import sys

import kopf
from kopf._cogs.structs import references
from kopf._core.engines import admission
from kopf._core.intents import registries
from kopf._core.reactor import inventory

EXAMPLES = references.Resource(
    group='kopf.dev', version='v1', plural='kopfexamples', kind='KopfExample', namespaced=True, preferred=True,
    verbs=frozenset({'list', 'watch', 'patch'}),
)


def behaving(handler):
    behave = handler.get('behave', {})

    def function(patch, warnings, **_):
        for key, value in behave.get('patch', {}).items():
            patch.setdefault('spec', {})[key] = value
        warnings.extend(behave.get('warn', []))
        text = behave.get('message', '')
        match behave.get('raise'):
            case 'admission':
                raise kopf.AdmissionError(text, code=behave.get('code', 500))
            case 'permanent':
                raise kopf.PermanentError(text)
            case 'temporary':
                raise kopf.TemporaryError(text)
            case 'arbitrary':
                raise ValueError(text)

    return function


async def answer(case):
    registry = registries.OperatorRegistry()
    for handler in case['handlers']:
        options = {k: v for k, v in handler.items() if k in {'id', 'labels', 'field', 'value', 'subresource'}}
        getattr(kopf.on, handler['on'])('kopf.dev', 'v1', 'kopfexamples', registry=registry, **options)(
            behaving(handler))
    insights = references.Insights()
    insights.webhook_resources.add(EXAMPLES)
    try:
        return await admission.serve_admission_request(
            case['request'], webhook=case.get('hint'), headers={}, sslpeer={}, settings=kopf.OperatorSettings(),
            memories=inventory.ResourceMemories(), memobase=kopf.Memo(), registry=registry, insights=insights, indices={})
    except admission.WebhookError as e:
        return {'error': type(e).__name__}


async def main():
    return [await answer(case) for case in json.load(sys.stdin)]


logging.disable()
json.dump(asyncio.run(main()), sys.stdout)
