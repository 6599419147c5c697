import { execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import t from 'tap'
import { findBinaries } from '../kit/cluster/binaries.ts'

const found = findBinaries(['setpriv'])
const skip =
  'missing' in found
    ? found.missing
    : process.platform === 'linux' && process.getuid?.() === 0
      ? false
      : 'only root can give its capabilities up'

/** Those of the hub's container. */
const asTheHub = ['setpriv', '--bounding-set=-all,+net_bind_service', '--inh-caps=-all']

void t.test('a compromised hub cannot open the host through a command', { skip }, async (t) => {
  const host = openSync('/', 'r')
  const command = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', host] })
  closeSync(host)
  t.teardown(() => command.kill())
  const opens = (path: string, ...before: readonly string[]): string => {
    const script = 'if error=$(ls "$0/" 2>&1 >/dev/null); then echo opened; else echo "$error"; fi'
    const [program, ...words] = [...before, 'sh', '-c', script, path]
    return execFileSync(program, words, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } })
  }
  for (const path of ['fd/3', 'root', 'cwd'].map((name) => `/proc/${command.pid}/${name}`)) {
    t.match(opens(path), /^opened/, path)
    t.match(opens(path, ...asTheHub), /Permission denied/, path)
  }
})
