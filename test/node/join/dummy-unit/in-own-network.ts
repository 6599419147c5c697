/** The commands of the unit that `join` writes, as systemd runs them. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { dummyUnit, dummyUnitFiles, joinedDummy } from '../../../../src/node/join/dummy-unit.ts'
import { manifests } from '../../../../src/cli/manifests.ts'
import { pod, pods, startCloud } from '../../../kit/cloud.ts'
import { goOffline } from '../../../kit/hub.ts'
import { hubForPods } from '../../../kit/hub-for-pods.ts'
import {
  enterOwnNetwork,
  ip,
  isInterface,
  startPod,
  withProgram,
} from '../../../kit/own-network.ts'

enterOwnNetwork(t)

const name = 'hub-dummy0'
const address = '169.254.2.1'

/** The right that the unit leaves to its commands, and no other. */
const confined = ['--bounding-set=-all,+net_admin', '--inh-caps=-all', '--no-new-privs']

/** Runs a command of the unit; the exit code. */
function run(
  step: 'ExecStart' | 'ExecStop',
  args: readonly string[] = confined,
  unit = dummyUnit({ name, address }),
): number | null {
  const [, command = ''] = new RegExp(`^${step}=(.*)$`, 'm').exec(unit) ?? []
  return spawnSync('setpriv', [...args, '/bin/sh', '-c', command], { stdio: 'ignore' }).status
}

const shown = (): string => (isInterface(name) ? ip('address', 'show', 'dev', name) : '')

void t.test('the unit creates the hub’s default interface, and removes it', (t) => {
  t.strictSame(joinedDummy(), { name, address })
  t.equal(dummyUnitFiles(undefined)[0]?.content, dummyUnit({ name, address }))
  for (const _again of [1, 2]) {
    t.equal(run('ExecStart'), 0)
    t.match(shown(), /inet 169\.254\.2\.1\/32 scope link hub-dummy0/)
    t.match(shown(), /<[A-Z,_]*\bUP\b/)
  }
  t.equal(run('ExecStop'), 0)
  t.equal(shown(), '')
  t.equal(run('ExecStop'), 0, 'where there is none, nothing is removed')
  t.end()
})

void t.test('an IPv6 address can be used at once', async (t) => {
  const unit = dummyUnitFiles('FD00::2:0:1')[0]?.content
  t.teardown(() => isInterface(name) && ip('link', 'delete', 'dev', name))
  t.equal(run('ExecStart', confined, unit), 0)
  t.match(shown(), /inet6 fd00::2:0:1\/128 scope global nodad/)
  const listener = createServer().listen(0, 'fd00::2:0:1')
  await once(listener, 'listening')
  listener.close()
  t.equal(run('ExecStop', confined, unit), 0)
  t.equal(shown(), '')
})

void t.test('manifests prints it for another address and name, as flags of the hub', async (t) => {
  const printed = async (...argv: string[]): Promise<string> => {
    let text = ''
    const terminal = {
      out: (more: string) => (text += more),
      err: (more: string) => (text += more),
    }
    await manifests.run(['--part=systemd', ...argv], terminal)
    return text.trimEnd()
  }
  const own = ['--dummy-if-ip=fd00::7', '--dummy-if-name=dummy7']
  const expected = dummyUnit({ name: 'dummy7', address: 'fd00::7' }).trimEnd()
  t.equal(await printed('--unit=nodehub-dummy.service', ...own), expected)
  const hub = await printed('--unit=nodehub.service', '--server-addr=https://a', ...own)
  for (const flag of own) t.match(hub, flag)
  const wrong = await printed('--unit=nodehub-dummy.service', "--dummy-if-name=a'; reboot '")
  t.match(wrong, /--dummy-if-name: .* is not the name of an interface/)
  t.notMatch(wrong, 'ExecStart')
})

void t.test('an interface made by others is used and kept', (t) => {
  ip('link', 'add', 'dev', name, 'type', 'bridge')
  t.teardown(() => ip('link', 'delete', 'dev', name))
  const before = shown()
  t.equal(run('ExecStart'), 0)
  t.equal(run('ExecStop'), 0)
  t.equal(shown(), before)
  t.end()
})

void t.test('a failed start leaves nothing', (t) => {
  t.not(run('ExecStart', ['--bounding-set=-all', '--no-new-privs']), 0, 'without the right')
  t.equal(shown(), '')
  const real = spawnSync('which', ['ip'], { encoding: 'utf8' }).stdout.trim()
  withProgram(t, 'ip', `case "$*" in *address\\ add*) exit 2;; esac; exec ${real} "$@"`)
  t.not(run('ExecStart'), 0, 'where the address is refused')
  t.equal(shown(), '')
  t.end()
})

void t.test('pods reach a hub there that has no right and no ip command', async (t) => {
  t.equal(run('ExecStart'), 0)
  t.teardown(() => isInterface(name) && ip('link', 'delete', 'dev', name))
  const cloud = await startCloud(t)
  cloud.sandbox.create(pods, pod('a'))
  const inPod = await startPod(t)
  await t.test('as in the image', async (t) => {
    withProgram(t, 'ip', 'exit 127')
    const { hub, ca } = await hubForPods(t, cloud, address)
    const asked = {
      url: `https://${address}:${hub.hub.proxySecurePort}/api/v1/namespaces/default/pods/a`,
      ca,
      headers: { Authorization: `Bearer ${cloud.sandbox.token('operator')}` },
    }
    t.match(await inPod.get(asked), { status: 200 })
    await goOffline(cloud, hub)
    t.match(await inPod.get(asked), { status: 200 }, 'offline, too')
    await hub.stop()
  })
  t.match(shown(), 'inet 169.254.2.1/32', 'it outlasts the hub')
  t.equal(run('ExecStop'), 0)
  t.equal(shown(), '')
})
