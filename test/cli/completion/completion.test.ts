import t, { type Test } from 'tap'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCli } from '../../../src/cli/cli.ts'
import { findBinaries } from '../../kit/cluster/binaries.ts'
import { said } from '../../kit/terminal.ts'

t.setTimeout(300_000)

const folder = mkdtempSync(join(tmpdir(), 'nodehub-completion-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

async function output(...argv: readonly string[]): Promise<string> {
  let text = ''
  await runCli(argv, { out: (more) => void (text += more), err: (more) => t.fail(more) })
  return text
}

const scriptFor = async (shell: string): Promise<string> => {
  const file = join(folder, `nodehub.${shell}`)
  writeFileSync(file, await output('completion', shell))
  return file
}

const skipWithout = (shell: string): string | false => {
  const found = findBinaries([shell])
  return 'missing' in found ? found.missing : false
}

const run = (shell: string, args: readonly string[], input = ''): readonly string[] =>
  execFileSync(shell, args, { encoding: 'utf8', input, cwd: folder, timeout: 60_000 })
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

type Complete = (line: string) => readonly string[]

/** What every shell is to complete, for the last word of a line. */
function completes(t: Test, complete: Complete): void {
  writeFileSync(join(folder, 'manifest-of-a-pod.yaml'), '')
  t.strictSame(complete('nodehub st'), ['start'])
  t.ok(complete('nodehub ').includes('inspect'))
  t.strictSame(complete('nodehub start --server-a'), ['--server-addr'])
  t.ok(complete('nodehub start --lb-mode ').includes('priority'))
  t.strictSame(complete('nodehub manifests --part sta'), ['static-pod'])
  t.strictSame(complete('nodehub inspect upstr'), ['upstreams'])
  t.strictSame(complete('nodehub inspect status -o ya'), ['yaml'])
  t.strictSame(complete('nodehub lint manifest-of'), ['manifest-of-a-pod.yaml'])
  t.strictSame(complete('nodehub completion fi'), ['fish'])
}

void t.test(
  'bash completes commands, flags, values and files',
  { skip: skipWithout('bash') },
  async (t) => {
    const file = await scriptFor('bash')
    const completed =
      (words: (line: string) => readonly string[]): Complete =>
      (line) => {
        const all = words(line)
        const list = all.map((word) => `'${word}'`).join(' ')
        const script = `source ${file}; compopt() { :; }
        COMP_WORDS=(${list}); COMP_CWORD=${all.length - 1}; _nodehub; printf '%s\\n' "\${COMPREPLY[@]}"`
        return run('bash', ['--norc', '-c', script]).map((word) => word.replace(/=$/, ''))
      }
    const byBlank = completed((line) => line.split(' '))
    completes(t, byBlank)
    const byBreaks = completed((line) => line.split(/ |(?<==)|(?==)/))
    t.strictSame(byBreaks('nodehub start --lb-mode=prio'), ['priority'])
    t.ok(byBreaks('nodehub start --lb-mode=').includes('priority'))
  },
)

void t.test(
  'fish completes commands, flags, values and files',
  { skip: skipWithout('fish') },
  async (t) => {
    const file = await scriptFor('fish')
    completes(t, (line) =>
      run('fish', ['--no-config', '-c', `source ${file}; complete -C '${line}'`]).map(
        (each) => each.split('\t')[0]?.replace(/=$/, '') ?? '',
      ),
    )
  },
)

/** zsh completes only in its line editor, which needs a terminal: a pseudo terminal of its own. */
const inTerminal = (file: string, line: string): string => `
zmodload zsh/zpty
zpty z 'zsh -f -i'
zpty -w z 'PROMPT= ; autoload -Uz compinit; compinit -u -D; source ${file}'
zpty -w z 'compadd() { [[ \${@[(i)-O|-A|-D]} -le $# ]] && { builtin compadd "$@"; return }; local -a found; builtin compadd -O found "$@"; print -rl -- "FOUND "$^found; builtin compadd "$@" }'
zpty -w z 'show() { LISTMAX=0; zle expand-or-complete; print; print DONE; }; zle -N show; bindkey "^I" show'
zpty -w z 'zle-line-init() { print REA""DY }; zle -N zle-line-init'
zpty -r z seen '*READY*'
zpty -w -n z ${JSON.stringify(line)}$'\\t'
zpty -r z seen '*DONE*'
print -r -- "$seen"
zpty -d z
`

void t.test(
  'zsh completes commands, flags, values and files',
  { skip: skipWithout('zsh') },
  async (t) => {
    const file = await scriptFor('zsh')
    completes(t, (line) => {
      const last = line.split(' ').at(-1) ?? ''
      const lines = run('zsh', ['-f'], inTerminal(file, line))
      const found = lines.flatMap((each) => /FOUND (\S+)/.exec(each)?.[1]?.replace(/=$/, '') ?? [])
      return [...new Set(found)].filter((word) => word.startsWith(last))
    })
  },
)

void t.test('every flag of a command that has an effect is completed, and no other', async (t) => {
  const script = await output('completion', 'bash')
  const completedFor = (command: string): readonly string[] => {
    const [, values = ''] =
      new RegExp(`^    ${command}\\) words='[^']*' values='([^']*)'`, 'm').exec(script) ?? []
    return values.split(' ').map((word) => word.replace(/=$/, ''))
  }
  for (const command of ['start', 'check-config', 'join', 'leave', 'lint', 'manifests']) {
    const completed = completedFor(command)
    const help = await output(command === 'check-config' ? 'start' : command, '--help')
    const shown = [...help.matchAll(/^ {2}(?:-\w, )?(--[a-z][\w-]*)/gm)].map(
      ([, flag = '']) => flag,
    )
    t.strictSame(completed.toSorted(), [...shown, '--help'].toSorted(), command)
  }
  t.notOk(completedFor('cluster').includes('--settle-timeout'))
  t.notOk(completedFor('demo').includes('--server-addr'), 'it has its own')
})

void t.test('another shell is refused', async (t) => {
  t.match(await said((terminal) => runCli(['completion', 'tcsh'], terminal)), {
    code: 2,
    out: '',
    err: 'it needs one of bash, zsh, fish',
  })
})
