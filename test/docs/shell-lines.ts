import { documentedLines } from '../documented-commands.ts'

/** Where a line of a page that a shell runs is run by a test, or why it is not. */
export type ShellWay =
  /** With an API server: test/control-plane/documented-commands.test.ts. */
  | 'API server'
  /** The same, of a command that lasts, until it prints this. */
  | { readonly lastsUntil: RegExp }
  /** At a running hub: test/docs/commands.test.ts. */
  | 'hub'
  /** As units of a node's root: test/docs/commands.test.ts. */
  | 'units'
  /** On a node with containerd and the hub as a static pod: test/control-plane/install.test.ts. */
  | 'static pod'
  /** By this test, which has the command, or reads the page. */
  | { readonly by: string }
  | { readonly notRun: string }

const ofSystemd = {
  notRun:
    'needs a node that systemd has booted: clean-debian.test.ts has its files, not its manager',
} as const

/** The first row that fits a line counts, and each fits one that no row before does. */
const ways: readonly (readonly [RegExp, ShellWay])[] = [
  [/^nodehub manifests .* \| kubectl apply -f -$/, 'API server'],
  [/^nodehub cluster (?:check|exit-plan|give-back)\b/, 'API server'],
  [/^nodehub cluster /, { lastsUntil: /nodehub serves the cluster/ }],
  [
    /^kubectl (?:-n \S+ (?:create|delete)|(?:label|annotate) nodes?|delete (?:mutating|validating))/,
    'API server',
  ],
  [/^kubectl (?:get (?:csr|node)$|-n nodehub-system get leases)/, 'API server'],
  [/^kubectl (?:get nodes -o custom|get pod shop-2)/, 'API server'],
  [
    /^kubectl -n kube-system (?:rollout|patch) /,
    { notRun: 'needs nodes with installers: adopt.test.ts has a DaemonSet rolled out' },
  ],
  [/^kubectl nodehub /, { by: 'test/control-plane/fleet.test.ts' }],
  [/^kubectl krew /, { notRun: 'needs krew; test/packaging/krew.test.ts has its rules' }],
  [/^kubectl kustomize /, { by: 'test/control-plane/chart.test.ts' }],
  [/^kubectl /, { by: 'test/control-plane/on-site-commands.test.ts' }],
  [/^helm install/, { by: 'test/control-plane/chart.test.ts' }],
  [/^for unit in nodehub/, 'units'],
  [/^for node in /, { notRun: 'needs other machines, by ssh' }],
  [/^systemctl enable --now nodehub/, 'units'],
  [/^journalctl .* \| jq /, { by: 'test/docs/logs.test.ts' }],
  [/^(?:systemctl|journalctl) /, ofSystemd],
  [/^crictl /, { notRun: 'needs crictl, a client of other packages than containerd' }],
  [/^(?:tail|cut) .*\/var\/log\/pods\//, 'static pod'],
  [/^(?:ctr |nodehub\(\) \{)/, 'static pod'],
  [/^chmod 755 \/usr\/local\/bin\/nodehub$/, 'static pod'],
  [/^curl /, 'hub'],
  [/\| curl .*\/v1\/token/, { by: 'test/scenarios/bootstrap.test.ts' }],
  [/^ss /, 'hub'],
  [/^(?:date|df) ?/, 'hub'],
  [/^(?:dmesg|smartctl)/, { notRun: 'reads the log of the kernel, or a disk, of a real machine' }],
  [/^echo 'net\.ipv4/, { by: 'test/node/join/kept-ports.test.ts' }],
  [/^echo 'server-addr/, { by: 'test/packaging/main.test.ts' }],
  [/^npm run package\b/, { by: 'test/packaging/main.test.ts' }],
  [/^npm (?:start|test|run)/, { notRun: 'is how the project itself is built and tested' }],
  [/^buildah /, { by: 'test/control-plane/image/build.ts' }],
  [/^apt /, { by: 'test/control-plane/clean-debian.test.ts' }],
  [/^dnf /, { notRun: 'needs a root of Fedora; test/packaging/main.test.ts unpacks and runs it' }],
  [/^tar -xf nodehub/, { by: 'test/packaging/main.test.ts' }],
  [/prometheus --config\.file/, { by: 'test/packaging/remote-write.test.ts' }],
  [/^kubeadm /, { notRun: "is kubeadm's; bare-node.test.ts makes such a token" }],
  [/^(?:ssh|scp) /, { notRun: 'needs another machine' }],
  [/^iptables /, { notRun: 'cuts the machine off' }],
  [/^systemd-creds /, { notRun: 'needs a TPM' }],
  [/^\/root\/nodehub-.* check-config /, { by: 'test/packaging/main.test.ts' }],
  [/^mkdir \/root\/of-the-later-release/, { notRun: 'needs a later release' }],
  [/^rm \/var\/lib\/nodehub\/pki/, { notRun: 'removes what a hub requests anew' }],
  [/^mv .*\/etc\/kubernetes\/manifests\//, { notRun: 'needs a node whose kubelet runs a yurthub' }],
  [/^GRAFANA=/, { notRun: 'needs a Grafana; monitoring.test.ts checks the files' }],
  [/^(?:export|alias) /, { notRun: 'prepares the shell for the next lines' }],
]

/** Lines that a shell runs, and those of the hub whose output goes to another program. */
const shellLines = documentedLines().filter(
  ({ line }) =>
    !line.startsWith('nodehub ') || /^nodehub (?:cluster|manifests .*\| kubectl)/.test(line),
)

export interface ShellLine {
  readonly page: string
  readonly line: string
  readonly row: number
  /** Absent where no row fits. */
  readonly way: ShellWay | undefined
}

/** Each once, in the order of the pages. */
export const linesWithWays: readonly ShellLine[] = [
  ...new Map(shellLines.map((each) => [each.line, each])).values(),
].map(({ page, line }) => {
  const row = ways.findIndex(([pattern]) => pattern.test(line))
  return { page, line, row, way: ways[row]?.[1] }
})

export const patterns = ways.map(([pattern]) => pattern)
