import t from 'tap'
import fs from 'node:fs'
import { join } from 'node:path'
import { adopt } from '../../src/cli/adopt-command.ts'
import { join as joinCommand } from '../../src/cli/join-command.ts'
import { leave } from '../../src/cli/leave-command.ts'
import { until } from '../kit/until.ts'
import { adoptable, run } from '../node/adopt/adoptable.ts'
import { identityOf, manifest } from '../node/adopt/yurthub-root.ts'
import { treeOf } from '../node/join/node-root.ts'

t.setTimeout(240_000)

const state = '/var/lib/nodehub'

void t.test('with --dry-run the plan is printed, and nothing changes', async (t) => {
  const { root, adopting } = await adoptable(t, ['--lb-mode=rr', '--enable-iptables=true'])
  const before = treeOf(root)
  const { code, out, err } = await adopting('--image=hub:7', '--dry-run')
  t.equal(code, 0)
  t.match(out, `yurthub: ${manifest}\nflags:\n  kept    --server-addr=https://`)
  t.match(out, '  kept    --lb-mode=rr\n')
  t.match(
    out,
    /\n {2}dropped --enable-iptables=true: has no effect here: the hub writes no such rules\n/,
  )
  t.match(
    out,
    `  rename  ${manifest} -> /etc/kubernetes/manifests/.yurt-hub.yaml.nodehub-adopted\n`,
  )
  t.match(out, '  write   /etc/kubernetes/manifests/nodehub.yaml\n')
  t.match(out, '  leave   /var/lib/yurthub\n')
  t.match(out, /\+\+\+ \/etc\/kubernetes\/manifests\/nodehub\.yaml\n@@ .* @@\n\+apiVersion: v1\n/)
  t.match(out, '+      image: hub:7\n')
  t.match(out, 'Nothing was changed: without --dry-run adopt does this.\n')
  t.notMatch(err, 'would refuse')
  t.strictSame(treeOf(root), before)
})

void t.test('the hub takes yurthub’s place, and is rolled back', async (t) => {
  const { root, node, adopting } = await adoptable(t)
  const before = treeOf(root, state)
  const identity = identityOf(root)
  t.match(await adopting(), { code: 0, out: /place, and Node edge-1 is Ready/ })
  t.ok(node.runsHub)
  t.notOk(node.runsYurthub)
  t.equal(node.started, 1, 'the hub is started once, when the ports are free')
  t.match(await adopting(), { code: 1, err: /adopted already/ })
  for (const flags of [[], ['--dry-run']])
    t.match(await run(leave, [`--root=${root}`, ...flags]), {
      code: 1,
      err: /nodehub adopt --rollback/,
    })
  t.match(await adopting('--rollback'), { code: 0, out: /^Rolled back/ })
  t.strictSame(treeOf(root, state), before)
  t.strictSame(identityOf(root), identity)
  t.ok(node.runsYurthub)
  t.match(await adopting('--rollback'), { code: 0, out: /nothing to roll back/ })
})

void t.test('adopt restores yurthub', async (t) => {
  await t.test('if the Node is not Ready', async (t) => {
    const { root, node, adopting, markReady } = await adoptable(t)
    const before = treeOf(root, state)
    const running = adopting('--timeout=15s')
    await until('the hub', () => node.runsHub)
    markReady('False')
    const { code, err, out } = await running
    t.match({ code, out }, { code: 1, out: /Rolled back: yurthub runs with its former files/ })
    t.match(err, 'not ready with the hub: Node edge-1 is not Ready after 15 s')
    t.strictSame(treeOf(root, state), before)
    t.ok(node.runsYurthub)
  })

  await t.test('if the kubelet does not reach the hub', async (t) => {
    const { root, node, adopting } = await adoptable(t)
    const before = treeOf(root, state)
    node.renews = false
    const { code, err } = await adopting('--timeout=15s')
    t.equal(code, 1)
    t.match(err, 'the kubelet does not renew the lease of edge-1 through the hub')
    t.strictSame(treeOf(root, state), before)
  })
})

void t.test('a node that is offline or not Ready is not adopted', async (t) => {
  const { root, cloud, adopting, markReady } = await adoptable(t)
  const before = treeOf(root)
  markReady('False')
  t.match(await adopting(), { code: 1, err: /not Ready now, .*\nNothing was changed/ })
  await cloud.unplug()
  t.match(await adopting(), { code: 1, err: /whether Node edge-1 is Ready is not known/ })
  t.match(await adopting('--dry-run'), { code: 0, err: /note: adopt would refuse: whether Node/ })
  t.strictSame(treeOf(root), before)
})

void t.test('units are for systemd of this node', async (t) => {
  const { root, adopting } = await adoptable(t)
  t.match(await adopting('--apply', '--systemd'), { code: 1, err: /run this without --root/ })
  t.match(await run(adopt, ['--dry-run', '--rollback', 'x', '--kubeconfig=/srv/k']), {
    code: 2,
    err: /--kubeconfig: .*\n.*"x" is not a flag\n.*--dry-run and --rollback: give one/,
  })
  t.ok(fs.existsSync(join(root, manifest)))
})

void t.test('a joined node has to leave before it is adopted or rolled back', async (t) => {
  const { root, cloud, adopting } = await adoptable(t)
  const joining = ['--nodepool-name=p', '--host-network-pool=false', `--server-addr=${cloud.url}`]
  t.equal((await run(joinCommand, [`--root=${root}`, ...joining, '--dry-run'])).code, 0)
  t.equal((await run(joinCommand, [`--root=${root}`, ...joining])).code, 0)
  t.match(await adopting(), { code: 1, err: /has joined with nodehub join: nodehub leave first/ })
})
