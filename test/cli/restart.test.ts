import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { delimiter, join } from 'node:path'
import t, { type Test } from 'tap'
import { storedAuthority } from '../../src/certificates/stored-authority.ts'
import { nodeRoot } from '../node/join/node-root.ts'
import { freePort } from '../kit/free-port.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { portOf } from '../kit/wire/listening.ts'

const pool = ['--nodepool-name=hn', '--host-network-pool']

/** Whether systemd runs on this machine or not. */
const noDummy = '--dummy-interface=false'

/**
 * Runs what follows with the node's folders in the place of the machine's own, for itself alone.
 */
const onTheNode = `for each in etc srv var/lib usr/local/bin; do mount --bind "$NODE_ROOT/$each" "/$each" || exit 99; done; mkdir -p /run/nodehub && mount -t tmpfs node /run/nodehub || exit 99; exec "$@"`

/** Says what the kubelet would find, restarted now. */
const systemctl = `#!/bin/sh
[ -e "$NODE_ROOT/refuses" ] && { echo refused >&2; exit 1; }
through=cloud
grep -q kubelet-nodehub.conf /srv/kubelet/flags.env && through=hub
hub=gone
[ -e /etc/kubernetes/manifests/nodehub.yaml ] && hub=there
echo "$@: through the $through, the hub is $hub" >> "$NODE_ROOT/calls"
`

/** A node of its own in the place of this machine, with what a hub that is ready shows. */
async function machine(t: Test) {
  const root = nodeRoot(rootFolder(t))
  const pki = join(root, '/var/lib/nodehub/pki')
  mkdirSync(pki, { recursive: true, mode: 0o700 })
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true })
  const { certificate, key } = await (
    await storedAuthority(pki, () => undefined)
  ).issue({
    commonName: 'hub',
    usage: 'server',
    ipAddresses: ['127.0.0.1'],
  })
  const secure = await portOf(t, createTlsServer({ cert: certificate, key }))
  const ops = await portOf(
    t,
    createServer((_request, response) => response.end()),
  )
  const ports = [
    `--proxy-port=${await freePort()}`,
    `--proxy-secure-port=${secure}`,
    `--serve-port=${ops}`,
  ]
  const bin = join(root, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'systemctl'), systemctl)
  chmodSync(join(bin, 'systemctl'), 0o755)
  const run = (...args: readonly string[]): Promise<{ code: number; err: string }> => {
    const { promise, resolve } = Promise.withResolvers<{ code: number; err: string }>()
    const command = ['-m', 'sh', '-c', onTheNode, 'sh', process.execPath, nodehubProgram, ...args]
    const env = {
      ...process.env,
      NODE_ROOT: root,
      PATH: `${bin}${delimiter}${process.env['PATH']}`,
    }
    execFile('unshare', command, { env }, (error, _, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, err }),
    )
    return promise
  }
  return {
    root,
    join: (...flags: readonly string[]) => run('join', ...pool, ...ports, noDummy, ...flags),
    leave: (...flags: readonly string[]) => run('leave', ...flags),
    calls: () => {
      const file = join(root, 'calls')
      const calls = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
      rmSync(file, { force: true })
      return calls
    },
  }
}

const skip =
  spawnSync('unshare', ['-m', 'true']).status !== 0 && 'mount namespaces are for root alone'

void t.test(
  'the kubelet is restarted when it is to find the hub, and before the hub goes',
  { skip },
  async (t) => {
    const { join, leave, calls } = await machine(t)
    t.match(await join(), { code: 0 })
    t.strictSame(calls(), [], 'nothing is restarted unasked')
    t.match(await join('--restart'), { code: 0 })
    t.strictSame(calls(), ['restart kubelet: through the hub, the hub is there'])
    t.match(await leave('--restart'), { code: 0 })
    t.strictSame(calls(), ['restart kubelet: through the cloud, the hub is there'])
  },
)

void t.test('--restart creates and removes the dummy interface at once', { skip }, async (t) => {
  const { root, join: joined, leave, calls } = await machine(t)
  const unit = join(root, '/etc/systemd/system/nodehub-dummy.service')
  t.match(await joined('--restart', '--dummy-interface'), { code: 0 })
  t.ok(existsSync(unit))
  const toldOf = (all: readonly string[]): readonly string[] =>
    all.map((each) => each.replace(/:.*/, ''))
  t.strictSame(toldOf(calls()), [
    'daemon-reload',
    'restart nodehub-dummy.service',
    'restart kubelet',
  ])
  t.match(await leave('--restart'), { code: 0 })
  t.notOk(existsSync(unit))
  t.strictSame(toldOf(calls()), ['restart kubelet', 'stop nodehub-dummy.service', 'daemon-reload'])
})

void t.test('a failed kubelet restart is reported, and keeps the hub', { skip }, async (t) => {
  const { root, join: joined, leave, calls } = await machine(t)
  writeFileSync(join(root, 'refuses'), '')
  t.match(await joined('--restart'), {
    code: 1,
    err: 'nodehub join: the kubelet was not restarted: refused\n',
  })
  t.match(await leave('--restart'), {
    code: 1,
    err: 'nodehub leave: the kubelet was not restarted: refused\nLeave again: it goes on from there.\n',
  })
  t.ok(existsSync(join(root, '/etc/kubernetes/manifests/nodehub.yaml')))
  rmSync(join(root, 'refuses'))
  t.match(await leave('--restart'), { code: 0 })
  t.strictSame(calls(), ['restart kubelet: through the cloud, the hub is there'])
  t.notOk(existsSync(join(root, '/etc/kubernetes/manifests/nodehub.yaml')))
})
