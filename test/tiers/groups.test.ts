import t from 'tap'
import { join, relative } from 'node:path'
import { groupsOf } from './groups.ts'

void t.test('short files of a folder share a process, thirty-two at most', async (t) => {
  const names = Array.from({ length: 34 }, (_, at) => `${at}.test.ts`)
  const content = () => Object.fromEntries(names.map((name) => [name, "import t from 'tap'"]))
  const root = relative('.', t.testdir({ one: content(), other: content() }))
  const [one, other] = ['one', 'other'].map((folder) =>
    names.map((name) => join(root, folder, name)),
  ) as [string[], string[]]
  const groups = groupsOf([...one, ...other], [one[0] ?? ''])
  t.strictSame(groups, [
    [one[0]],
    one.slice(1, 33),
    one.slice(33),
    other.slice(0, 32),
    other.slice(32),
  ])
})

void t.test('folders of a folder of test/ count as one', async (t) => {
  const files = ['test/api/kube/gvk.test.ts', 'test/api/request/component.test.ts']
  const others = ['test/config/bootstrap.test.ts', 'test/documents.test.ts']
  t.strictSame(groupsOf([...files, ...others], []), [files, ...others.map((each) => [each])])
})

void t.test(
  'what a file measures of its process, or does to it for good, it does alone',
  async (t) => {
    const alone = [
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
  },
)

void t.test('files that listen to their process share one, with no others', async (t) => {
  const root = relative(
    '.',
    t.testdir({
      one: {
        'a.test.ts': "process.on('warning', see)",
        'b.test.ts': "import t from 'tap'",
      },
      other: { 'c.test.ts': "process.env['TZ'] = 'UTC'" },
    }),
  )
  const [a, b, c] = ['one/a', 'one/b', 'other/c'].map((name) => join(root, `${name}.test.ts`))
  t.strictSame(groupsOf([a, b, c] as string[], []), [[a, c], [b]])
})

void t.test('files with clocks of their own share a process, with no others', async (t) => {
  const root = relative(
    '.',
    t.testdir({
      one: {
        'a.test.ts': "import { setClock } from '../kit/set-clock.ts'",
        'b.test.ts': "spawn('env', { env: { PATH: process.env['PATH'] } })",
      },
      other: { 'c.test.ts': "mock.timers.enable({ apis: ['setTimeout'] })" },
    }),
  )
  const [a, b, c] = ['one/a', 'one/b', 'other/c'].map((name) => join(root, `${name}.test.ts`))
  t.strictSame(groupsOf([a, b, c] as string[], []), [[a, c], [b]])
})
