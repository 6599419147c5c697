import t from 'tap'
import { join, relative } from 'node:path'
import { groupsOf } from './groups.ts'

void t.test('short files of a folder share a process, ten at most', async (t) => {
  const names = Array.from({ length: 12 }, (_, at) => `${at}.test.ts`)
  const content = () => Object.fromEntries(names.map((name) => [name, "import t from 'tap'"]))
  const root = relative('.', t.testdir({ one: content(), other: content() }))
  const [one, other] = ['one', 'other'].map((folder) =>
    names.map((name) => join(root, folder, name)),
  ) as [string[], string[]]
  const groups = groupsOf([...one, ...other], [one[0] ?? ''])
  t.strictSame(groups, [
    [one[0]],
    one.slice(1, 11),
    one.slice(11),
    other.slice(0, 10),
    other.slice(10),
  ])
})

void t.test('folders of a folder of test/ count as one', async (t) => {
  const files = ['test/api/kube/gvk.test.ts', 'test/api/request/component.test.ts']
  const others = ['test/config/bootstrap.test.ts', 'test/documents.test.ts']
  t.strictSame(groupsOf([...files, ...others], []), [files, ...others.map((each) => [each])])
})

void t.test('what a file does to its process, or measures of it, it does alone', async (t) => {
  const alone = [
    "process.on('warning', see)",
    "process.env['TZ'] = 'UTC'",
    "import { setClock } from '../kit/set-clock.ts'",
    "mock.timers.enable({ apis: ['setTimeout'] })",
    'const before = heldBytes() // ../kit/held-bytes.ts',
    "broken(SqliteStore.prototype, 'list', change)",
    'process.threadCpuUsage()',
  ]
  const files = alone.map((text, at) => [`${at}.test.ts`, text] as const)
  const root = relative('.', t.testdir(Object.fromEntries(files)))
  const paths = files.map(([name]) => join(root, name))
  t.strictSame(
    groupsOf(paths, []),
    paths.map((path) => [path]),
  )
})
