import t from 'tap'
import { core, sourcesIn } from './sources.ts'

void t.test('sources are those of the folders and files that are named', async (t) => {
  const root = t.testdir({
    src: { api: { 'a.ts': '', kube: { 'b.ts': '', 'c.json': '' } }, 'api-other': { 'd.ts': '' } },
    filters: { 'e.ts': '' },
    test: { 'f.ts': '' },
  })
  t.strictSame(sourcesIn(root, ['src/api']), ['src/api/a.ts', 'src/api/kube/b.ts'])
  t.strictSame(sourcesIn(root, ['src/api/a.ts', 'filters']), ['filters/e.ts', 'src/api/a.ts'])
  t.throws(() => sourcesIn(root, ['src/api', 'src/kube', 'test']), {
    message: 'no sources in src/kube, test',
  })
})

void t.test('each folder that is tried by default has sources', async (t) => {
  t.ok(sourcesIn('.', core).length > 0)
})
