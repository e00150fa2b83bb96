"""The contender of genuine Kopf: python handlers.py changes|timers|restart|latency|pods N, with the handlers of the others."""
import asyncio
import logging
import sys
import time

import kopf

_, SCENARIO, OBJECTS = sys.argv


def tell(word, value):
    print('yardstick', word, value, flush=True)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False
    settings.peering.standalone = True


if SCENARIO == 'pods':
    seen = 0

    @kopf.index('pods')
    def by_node(name, spec, **_):
        return {spec.get('nodeName'): name}

    @kopf.on.event('pods')
    async def see(**_):
        global seen
        seen += 1
        if seen == int(OBJECTS):
            tell('all', seen)

else:
    @kopf.on.create('kopfexamples')
    async def create_fn(name, **_):
        return {'message': f'created {name}'}

    @kopf.on.update('kopfexamples')
    async def update_fn(spec, **_):
        field = spec.get('field')
        if SCENARIO == 'latency' and field.isdigit():
            tell('latency', (time.time_ns() - int(field)) / 1e6)
        return {'seen': field}

if SCENARIO == 'timers':
    ticks = 0

    @kopf.timer('kopfexamples', interval=5)
    async def tick(**_):
        global ticks
        ticks += 1

    @kopf.on.cleanup()
    async def tell_ticks(**_):
        tell('ticks', ticks)

elif SCENARIO != 'pods':
    @kopf.on.delete('kopfexamples')
    async def delete_fn(**_):
        pass

if __name__ == '__main__':
    kopf.configure(verbose=False, quiet=True)
    logging.getLogger().setLevel(logging.ERROR)
    asyncio.run(kopf.operator(clusterwide=True, standalone=True))
