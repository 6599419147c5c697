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
      "broken(LogStore.prototype, 'list', change)",
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

for (const { what, a, b, c } of [
  {
    what: 'that listen to their process',
    a: "process.on('warning', see)",
    b: "import t from 'tap'",
    c: "process.env['TZ'] = 'UTC'",
  },
  {
    what: 'with clocks of their own',
    a: "import { setClock } from '../kit/set-clock.ts'",
    b: "spawn('env', { env: { PATH: process.env['PATH'] } })",
    c: "mock.timers.enable({ apis: ['setTimeout'] })",
  },
])
  void t.test(`files ${what} share a process, with no others`, async (t) => {
    const content = { one: { 'a.test.ts': a, 'b.test.ts': b }, other: { 'c.test.ts': c } }
    const root = relative('.', t.testdir(content))
    const at = (name: string): string => join(root, `${name}.test.ts`)
    const files = ['one/a', 'one/b', 'other/c'].map(at)
    t.strictSame(groupsOf(files, []), [[at('one/a'), at('other/c')], [at('one/b')]])
  })
