import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import v8, { cachedDataVersionTag } from 'node:v8'
import t from 'tap'
import { giveBackMemory, mallocSettings } from '../../src/cli/memory-settings.ts'
import { systemdUnits } from '../../src/node/join/systemd-units.ts'
import { usualPorts } from '../../src/node/join/static-pod.ts'
import { turn } from '../../src/base/clock.ts'
import { Client } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { until } from '../kit/until.ts'

const lines = Object.entries(mallocSettings).map((each) => each.join('='))

void t.test('a hub has malloc’s settings, however it is started', async (t) => {
  const opsPort = await freePort()
  const hub = spawn(
    process.execPath,
    [
      '--disable-sigusr1',
      nodehubProgram,
      'start',
      '--server-addr=http://127.0.0.1:1',
      '--node-name=edge-1',
      `--proxy-port=${await freePort()}`,
      `--proxy-secure-port=${await freePort()}`,
      `--serve-port=${opsPort}`,
      `--root-dir=${rootFolder(t)}`,
      '--enable-dummy-if=false',
    ],
    { env: {}, stdio: 'ignore' },
  )
  t.teardown(() => hub.kill('SIGKILL'))
  const ops = new Client({ url: `http://127.0.0.1:${opsPort}`, component: 'prober' })
  await until('the hub to live', async () => {
    const { status } = await ops.get('/livez').catch(() => ({ status: 0 }))
    return status === 200
  })
  const environment = readFileSync(`/proc/${hub.pid}/environ`, 'utf8').split('\0')
  t.strictSame(environment.filter((each) => each.startsWith('MALLOC_')).toSorted(), lines)
  const command = readFileSync(`/proc/${hub.pid}/cmdline`, 'utf8').split('\0')
  t.strictSame(command.slice(1, 4), ['--disable-sigusr1', nodehubProgram, 'start'])
})

void t.test('the image and the unit have malloc’s settings, which saves a second start', (t) => {
  const dockerfile = readFileSync(join(import.meta.dirname, '../../Dockerfile'), 'utf8')
  const { 'nodehub.service': unit } = systemdUnits({
    args: ['start'],
    rootDir: '/var/lib/nodehub',
    ports: usualPorts,
    nodeName: 'edge-1',
    runtime: '/usr/bin/node',
  })
  for (const text of [dockerfile, unit]) t.match(text, lines.join(' '))
  t.end()
})

void t.test(
  'garbage is given back; V8’s flags stay, as it refuses code kept under others',
  async (t) => {
    const before = cachedDataVersionTag()
    const garbage = new WeakRef({})
    await turn()
    giveBackMemory()
    await until('it to be gone', () => garbage.deref() === undefined)
    t.equal(cachedDataVersionTag(), before)
    t.notOk('gc' in globalThis)
  },
)

void t.test('a Node that has no way to collect garbage goes on without', (t) => {
  const { setFlagsFromString } = v8
  v8.setFlagsFromString = () => undefined
  syncBuiltinESMExports()
  t.teardown(() => {
    v8.setFlagsFromString = setFlagsFromString
    syncBuiltinESMExports()
  })
  t.doesNotThrow(giveBackMemory)
  t.end()
})
