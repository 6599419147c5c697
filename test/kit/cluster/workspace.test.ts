import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../until.ts'

const skip = process.platform === 'linux' ? false : 'the reaper reads /proc'

/** A test that starts a process, which starts another, and says where and which. */
const test = `
import { Daemon } from ${JSON.stringify(join(import.meta.dirname, 'daemon.ts'))}
import { openWorkspace } from ${JSON.stringify(join(import.meta.dirname, 'workspace.ts'))}
const workspace = openWorkspace({ teardown: () => {}, comment: () => {}, passing: () => true })
const daemon = new Daemon(workspace, 'sleeper', {
  command: 'sh',
  args: ['-c', 'sleep 600; true', workspace.path],
  ready: async () => true,
})
await daemon.start()
process.stdout.write(JSON.stringify({ path: workspace.path, id: daemon.id }))
`

void t.test(
  'when a test process is killed, its children end and its folder goes',
  { skip },
  async (t) => {
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      const tester = spawn(process.execPath, ['--input-type=module', '--eval', test], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [said] = (await once(tester.stdout, 'data')) as [Buffer]
      const { path, id } = JSON.parse(said.toString()) as { path: string; id: number }
      t.ok(groupLives(id))
      tester.kill(signal)
      await until(`the folder to go after ${signal}`, () => !existsSync(path), { seconds: 10 })
      // What was killed may still be on its way out when the folder has gone.
      await until(`the processes to go after ${signal}`, () => !groupLives(id), { seconds: 10 })
      t.notOk(groupLives(id), 'nor is anything left of the process and its children')
    }
  },
)

/**
 * Whether a process of the group still runs; one that has ended stays in the table until its parent
 * looks (proc(5), stat).
 */
function groupLives(group: number): boolean {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .some((id) => {
      const [state, , processGroup] = statOf(id)
      return Number(processGroup) === group && state !== 'Z' && state !== 'X'
    })
}

function statOf(id: string): string[] {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
