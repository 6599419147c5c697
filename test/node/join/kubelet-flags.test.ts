import t from 'tap'
import { withFlags, withoutFlags } from '../../../src/node/join/kubelet-flags.ts'

const kubeconfig = '/etc/kubernetes/kubelet-nodehub.conf'
const wanted = { nodePool: 'p', hostNetwork: true, kubeconfig }
const own = `--kubeconfig=${kubeconfig} --bootstrap-kubeconfig=`
const labels = 'apps.openyurt.io/nodepool=p,nodepool.openyurt.io/hostnetwork=true'

const made = (content: string, flags = wanted): string => withFlags(content, flags).content

void t.test('labels and kubeconfig are added to flags', async (t) => {
  t.equal(
    made('KUBELET_KUBEADM_ARGS="--a=1 --b"\n'),
    `KUBELET_KUBEADM_ARGS="--a=1 --b --node-labels=${labels} ${own}"\n`,
  )
  t.equal(made(''), `KUBELET_KUBEADM_ARGS="--node-labels=${labels} ${own}"\n`)
  t.equal(
    made('# kept\nOTHER=x\nKUBELET_KUBEADM_ARGS=--a'),
    `# kept\nOTHER=x\nKUBELET_KUBEADM_ARGS="--a --node-labels=${labels} ${own}"`,
  )
  t.equal(
    made('  KUBELET_KUBEADM_ARGS = "--a"\n'),
    `KUBELET_KUBEADM_ARGS="--a --node-labels=${labels} ${own}"\n`,
    'systemd takes blanks about the name',
  )
  t.equal(
    made('KUBELET_KUBEADM_ARGS="--a"\n', { ...wanted, hostNetwork: false }),
    `KUBELET_KUBEADM_ARGS="--a --node-labels=apps.openyurt.io/nodepool=p ${own}"\n`,
  )
})

void t.test('labels that are there stay, but those of another pool', async (t) => {
  const before = `KUBELET_KUBEADM_ARGS='--node-labels x=y,apps.openyurt.io/nodepool=old,nodepool.openyurt.io/hostnetwork=true --v 2'\n`
  t.equal(
    made(before, { ...wanted, hostNetwork: false }),
    `KUBELET_KUBEADM_ARGS='--node-labels=x=y,apps.openyurt.io/nodepool=p --v 2 ${own}'\n`,
  )
  t.equal(
    made('KUBELET_KUBEADM_ARGS="--node-labels=a=b --node-labels=c=d"\n'),
    `KUBELET_KUBEADM_ARGS="--node-labels=a=b --node-labels=c=d,${labels} ${own}"\n`,
  )
})

void t.test('withFlags() is idempotent', async (t) => {
  for (const content of [
    '',
    'KUBELET_KUBEADM_ARGS="--a"\n',
    'KUBELET_KUBEADM_ARGS="--node-labels a=b --kubeconfig /x"\n',
  ]) {
    t.equal(made(made(content)), made(content), content)
  }
})

void t.test('flags that the kubelet dropped are removed and reported', async (t) => {
  const before =
    'KUBELET_KUBEADM_ARGS="--network-plugin=cni --cni-conf-dir /etc/cni/net.d --kubeconfig=/old --a"\n'
  const { content, taken } = withFlags(before, wanted)
  t.equal(content, `KUBELET_KUBEADM_ARGS="--a --node-labels=${labels} ${own}"\n`)
  t.strictSame(taken, {
    ended: ['--network-plugin=cni', '--cni-conf-dir=/etc/cni/net.d'],
    replaced: ['--kubeconfig=/old'],
  })
  t.equal(
    withoutFlags(content.replace('--a', '--a --new'), kubeconfig, taken),
    'KUBELET_KUBEADM_ARGS="--a --new --network-plugin=cni --cni-conf-dir=/etc/cni/net.d --kubeconfig=/old"\n',
  )
})

void t.test('values that systemd reads differently throw', async (t) => {
  for (const value of [`"--a='b c'"`, '"--a=\\"b\\""', '--a=$X', '"--a', String.raw`--a \ `]) {
    t.throws(() => made(`KUBELET_KUBEADM_ARGS=${value}\n`), { code: 'UNREADABLE_FLAGS' }, value)
  }
})
