import { programName } from './command.ts'

/** What each example is for, and what is typed after the name of the program. */
type Examples = Readonly<Record<string, string>>

/** By command and subcommand. */
export const examples: Readonly<Record<string, Examples>> = {
  start: {
    "with the kubelet's certificate":
      'start --server-addr=https://10.0.0.1:6443 --bootstrap-mode=kubeletcertificate',
    'settings in a file, which is read again when it changes':
      'start --config=/etc/nodehub/config.yaml',
    'several API servers, the first as long as it is healthy':
      'start --server-addr=https://10.0.0.1:6443,https://10.0.0.2:6443 --lb-mode=priority \\\n      --bootstrap-mode=kubeletcertificate',
  },
  adopt: {
    'the plan for this node, which changes nothing': 'adopt --dry-run',
    "take yurthub's place": 'adopt',
    'roll back': 'adopt --rollback',
  },
  demo: {
    'with the default ports': 'demo',
    'with a hub port of your own': 'demo --proxy-port=20261',
    'with the legacy filter': 'demo --host-network-propagation=on',
  },
  'check-config': {
    'a file before it is put in place': 'check-config --config=/etc/nodehub/config.yaml',
    flags: 'check-config --server-addr=https://10.0.0.1:6443 --bootstrap-mode=kubeletcertificate',
    'what a flag adds to a file':
      'check-config --config=/etc/nodehub/config.yaml --disabled-resource-filters=servicetopology',
  },
  cluster: {
    'in a pod': 'cluster',
    'from a workstation': 'cluster --kubeconfig=admin.conf --context=edge',
    "in yurt-manager's place": 'cluster --take-over',
  },
  'cluster check': {
    'with the current context': 'cluster check --kubeconfig=admin.conf',
    'with another': 'cluster check --kubeconfig=admin.conf --context=edge',
    'in a pod': 'cluster check',
  },
  'cluster exit-plan': {
    'as a table': 'cluster exit-plan --kubeconfig=admin.conf',
    'with the patches in full': 'cluster exit-plan --kubeconfig=admin.conf -o yaml',
    'one owner kept off the pool':
      'cluster exit-plan --kubeconfig=admin.conf --keep-off=default/web',
  },
  'cluster give-back': {
    'with the current context': 'cluster give-back --kubeconfig=admin.conf',
    'with another': 'cluster give-back --kubeconfig=admin.conf --context=edge',
    'from another namespace': 'cluster give-back --kubeconfig=admin.conf --namespace=edge-system',
  },
  completion: {
    bash: 'completion bash',
    zsh: 'completion zsh',
    fish: 'completion fish',
  },
  inspect: {
    'whether all is well': 'inspect status',
    'whether the node would come back without a link': 'inspect boot',
    'requests as they come, and the reason for each answer': 'inspect requests --watch',
  },
  'inspect requests': {
    'the last requests': 'inspect requests',
    'refusals and failures as they come': 'inspect requests --watch --code=4xx,5xx',
    'slow answers to one program': 'inspect requests --component=kubelet --slower-than=500ms',
  },
  'inspect pod': {
    'as each component sees it': 'inspect pod default/web-0',
    'for a program': 'inspect pod default/web-0 -o json',
    'on the disk of a stopped hub': 'inspect pod default/web-0 --root-dir=/var/lib/nodehub',
  },
  'inspect get': {
    'a Service': 'inspect get services/kubernetes',
    'in another namespace': 'inspect get configmaps/coredns -n kube-system',
    'on the disk of a stopped hub': 'inspect get nodes/edge-1 --root-dir=/var/lib/nodehub',
  },
  install: {
    'as the DaemonSet runs it': 'install --root=/host',
    'leave again': 'install --root=/host --uninstall',
    "in yurthub's place": 'install --root=/host --adopt',
  },
  join: {
    'what would change': 'join --nodepool-name=edge-a --dry-run',
    'join, and restart the kubelet behind the hub': 'join --nodepool-name=edge-a --restart',
    'a node that is in no cluster yet':
      'join --nodepool-name=edge-a --server-addr=https://10.0.0.1:6443 \\\n      --join-token=TOKEN --discovery-token-ca-cert-hash=sha256:HEX',
  },
  'kubectl status': {
    'the fleet by release': 'kubectl status',
    'one node': 'kubectl status edge-1',
    'for a program': 'kubectl status edge-1 -o json',
  },
  'kubectl fleet': {
    'every node, the worst first': 'kubectl fleet',
    'the nodes of a pool': 'kubectl fleet -l apps.openyurt.io/nodepool=kiosks',
    'in another cluster': 'kubectl fleet --context edge',
  },
  'kubectl why': {
    'an object in a namespace': 'kubectl why edge-1 get configmaps/web -n shop',
    'a path, as in logs': 'kubectl why edge-1 /api/v1/namespaces/shop/pods?watch=true',
    'a whole list': 'kubectl why edge-1 list services',
  },
  kubectl: {
    'every node, the worst first': 'kubectl fleet',
    'one node': 'kubectl status edge-1',
    'why a node answers as it does': 'kubectl why edge-1 list services',
  },
  leave: {
    'what would change': 'leave --dry-run',
    'leave, and restart the kubelet without the hub': 'leave --restart',
    'leave, and remove keys and cache': 'leave --restart --purge',
  },
  lint: {
    'a manifest': 'lint web.yaml',
    'what a chart would apply': 'lint - --pool=edge-a=host-network',
    'for a program': 'lint web.yaml -o json',
  },
  manifests: {
    'a static pod': 'manifests --part=static-pod --server-addr=https://10.0.0.1:6443',
    "the node's rights": 'manifests --part=rbac',
    'the components of the cluster': 'manifests --part=cluster',
  },
  version: {
    'both versions': 'version',
  },
}

/** The examples at the end of a help. */
export function examplesOf(command: string, subcommand = ''): string {
  const isReport = command === 'inspect' && /^[a-z]/.test(subcommand)
  const found =
    examples[`${command} ${subcommand}`] ?? (isReport ? ofReport(subcommand) : examples[command])
  const lines = Object.entries(found ?? {}).map(
    ([what, typed]) => `  # ${what}\n  ${programName(typed)}\n`,
  )
  return lines.length === 0 ? '' : `Examples:\n${lines.join('')}`
}

const ofReport = (name: string): Examples => ({
  'as a table': `inspect ${name}`,
  'for a program': `inspect ${name} -o json`,
  'again after each change': `inspect ${name} --watch`,
})
