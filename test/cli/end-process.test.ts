import t from 'tap'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const source = join(import.meta.dirname, '..', '..', 'src', 'cli')

/** A pipe that no process ever writes to: whoever opens it for reading waits. */
function silentPipe(folder: string): string {
  const path = join(folder, 'silent')
  execFileSync('mkfifo', [path])
  return path
}

interface End {
  readonly code: unknown
  readonly signal: unknown
  /** What it wrote to standard error. */
  readonly said: string
}

/** How a process ends that runs `script`, with what ends processes at hand. */
async function endOf(script: string, ...options: readonly string[]): Promise<End> {
  const text = `
    import { open, openSync } from 'node:fs'
    import { endProcess, killLater } from '${join(source, 'end-process.ts')}'
    import { standardError } from '${join(source, 'log.ts')}'
    ${script}`
  const args = [...options, '--input-type=module', '-e', text]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
  const [code, signal] = (await once(child, 'close')) as [unknown, unknown]
  return { code, signal, said }
}

void t.test('a process ends with its code while a thread of it waits for ever', async (t) => {
  const pipe = silentPipe(t.testdir())
  for (const code of [0, 1]) {
    const script = `open('${pipe}', () => undefined); await endProcess(${code}, standardError())`
    t.strictSame(await endOf(script), { code, signal: null, said: '' })
  }
})

void t.test('a process that ends opens no debugger on a SIGUSR1 that is pending', async (t) => {
  // With the option the signal is blocked, stays pending, and is still so in the program that the
  // process execs.
  const script = `process.kill(process.pid, 'SIGUSR1'); await endProcess(1, standardError())`
  t.strictSame(await endOf(script, '--disable-sigusr1'), { code: 1, signal: null, said: '' })
})

void t.test('a process whose main thread waits for ever is killed', async (t) => {
  const script = `killLater(200); openSync('${silentPipe(t.testdir())}')`
  t.strictSame(await endOf(script), { code: null, signal: 'SIGKILL', said: '' })
})
