import t from 'tap'
import { parseJsonPath } from '../../../../src/api/kube/tables/json-path.ts'

const pump = {
  metadata: { annotations: { 'a.b/c': 'x' } },
  spec: { valves: [{ name: 'v0' }, { name: 'v1' }] },
  status: { conditions: [{ type: 'Wet' }, { type: 'Ready', status: 'True' }] },
}

const read = (path: string): unknown => parseJsonPath(path)?.(pump)

void t.test('a printer column’s JSONPath reads its value', async (t) => {
  t.equal(read('.spec.valves[1].name'), 'v1')
  t.equal(read('.spec.valves[-1].name'), 'v1')
  t.equal(read('.spec.valves[*].name'), 'v0', 'the first of several')
  t.equal(read('.status.conditions[?(@.type=="Ready")].status'), 'True')
  t.equal(read(".status.conditions[?(@.type == 'Ready')].status"), 'True')
  t.equal(read(String.raw`.metadata.annotations.a\.b/c`), 'x')
  t.equal(read(`.metadata.annotations['a.b/c']`), 'x')
})

void t.test('a missing path has no value', async (t) => {
  for (const path of ['.spec.none', '.spec.valves[7]', '.spec[0]', '.spec.valves.name'])
    t.equal(read(path), undefined, path)
})

void t.test('an unsupported path is not evaluated', async (t) => {
  for (const path of [
    'spec',
    '..spec',
    '.spec[',
    '.spec[?(@.a>1)]',
    '{.spec}',
    `.${'a'.repeat(2000)}`,
  ])
    t.equal(parseJsonPath(path), undefined, path)
})
