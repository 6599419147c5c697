import t from 'tap'
import { unitStart } from '../../../src/node/adopt/unit-words.ts'

const words = (unit: string, files: Record<string, string> = {}): readonly string[] =>
  unitStart([`[Service]\n${unit}`], (path) => files[path]).words

void t.test('a command line is read as systemd reads it', async (t) => {
  t.strictSame(words('ExecStart=/a/yurthub --a "--b=c d" \'--e f\' --g=\\"h\\"'), [
    '/a/yurthub',
    '--a',
    '--b=c d',
    '--e f',
    '--g="h"',
  ])
  t.strictSame(words('ExecStart=-/a/yurthub \\\n  --a \\\n# between\n  --b\n'), [
    '/a/yurthub',
    '--a',
    '--b',
  ])
  t.strictSame(
    words('Environment="A=--x --y" B=z\nExecStart=/a $A --b=${B}1 $C "--d=$$e" --f=%%'),
    ['/a', '--x', '--y', '--b=z1', '--d=$e', '--f=%'],
  )
})

void t.test('later settings and environment files have their order', async (t) => {
  t.strictSame(words('ExecStart=/old\nExecStart=\nExecStart=/new'), ['/new'])
  t.strictSame(words('Environment=A=1\nEnvironment=\nExecStart=/a $A'), ['/a'])
  const files = { '/f': '# no\nA="2 3"\n\nB=4\n' }
  t.strictSame(
    words(
      'EnvironmentFile=/f\nEnvironmentFile=-/none\nEnvironment=A=1\nExecStart=/a $A ${A} $B',
      files,
    ),
    ['/a', '2', '3', '2 3', '4'],
  )
  const { words: dropIn } = unitStart(
    ['[Service]\nExecStart=/a\n[Install]\nExecStart=/b', '[Service]\nExecStart=\nExecStart=/c'],
    () => undefined,
  )
  t.strictSame(dropIn, ['/c'])
})

void t.test('unreadable units are refused', async (t) => {
  for (const [unit, why] of [
    ['', /0 ExecStart lines/],
    ['ExecStart=/a\nExecStart=/b', /2 ExecStart lines/],
    ['ExecStart=/a --node-name=%H', /specifier %H/],
    ['ExecStart=/a "--b', /quotes in it do not end/],
    ['EnvironmentFile=/none\nExecStart=/a', /EnvironmentFile \/none is not there/],
  ] as const)
    t.throws(() => words(unit), why, unit)
})
