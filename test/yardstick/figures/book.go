package figures

import "slices"

// Book collects all figures of one scenario, in the order of their first values.
type Book struct {
	phases []phase
}

type phase struct {
	name    string
	figures []figure
	remarks map[string]string // of contenders
}

type figure struct {
	name   string
	values map[string][]float64 // of contenders, a value for each round
}

// Note stores one value of one round of a contender.
func (b *Book) Note(phaseName, figureName, contender string, value float64) {
	p := b.phase(phaseName)
	i := slices.IndexFunc(p.figures, func(f figure) bool { return f.name == figureName })
	if i < 0 {
		i = len(p.figures)
		p.figures = append(p.figures, figure{name: figureName, values: map[string][]float64{}})
	}
	values := p.figures[i].values
	values[contender] = append(values[contender], value)
}

// Remark stores a text about a phase of a contender; a later round replaces it.
func (b *Book) Remark(phaseName, contender, text string) {
	b.phase(phaseName).remarks[contender] = text
}

func (b *Book) phase(name string) *phase {
	i := slices.IndexFunc(b.phases, func(p phase) bool { return p.name == name })
	if i < 0 {
		i = len(b.phases)
		b.phases = append(b.phases, phase{name: name, remarks: map[string]string{}})
	}
	return &b.phases[i]
}
