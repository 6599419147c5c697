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

/** How a process ends that runs `script`, with what ends processes at hand. */
async function endOf(script: string): Promise<{ code: unknown; signal: unknown }> {
  const text = `
    import { open, openSync } from 'node:fs'
    import { endProcess, killLater } from '${join(source, 'end-process.ts')}'
    import { standardError } from '${join(source, 'log.ts')}'
    ${script}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: 'ignore' })
  const [code, signal] = (await once(child, 'exit')) as [unknown, unknown]
  return { code, signal }
}

void t.test('a process ends with its code while a thread of it waits for ever', async (t) => {
  const pipe = silentPipe(t.testdir())
  for (const code of [0, 1]) {
    const script = `open('${pipe}', () => undefined); await endProcess(${code}, standardError())`
    t.strictSame(await endOf(script), { code, signal: null })
  }
})

void t.test('a process whose main thread waits for ever is killed', async (t) => {
  const script = `killLater(200); openSync('${silentPipe(t.testdir())}')`
  t.strictSame(await endOf(script), { code: null, signal: 'SIGKILL' })
})
