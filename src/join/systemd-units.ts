import type { HubPorts } from './static-pod.ts'

/**
 * What has systemd start the units at boot, as the links of `systemctl enable` would. These are
 * files like any other: a join writes them into an image as on a node, and leaving takes them back.
 */
export const targetDropIns = {
  'sockets.target.d/nodehub.conf': `[Unit]
Wants=nodehub.socket nodehub-ipv6.socket
`,
  'multi-user.target.d/nodehub.conf': `[Unit]
Wants=nodehub.service
`,
} as const

/** What differs from node to node in the hub's units. */
export interface SystemdUnitsOptions {
  /** What the hub is started with: `start` and its flags. */
  readonly args: readonly string[]
  readonly ports: HubPorts
  /** The node's name; absent: the host's. */
  readonly nodeName: string | undefined
}

/** The units by their file names, in the order in which they depend on each other. */
export const unitNames = ['nodehub.socket', 'nodehub-ipv6.socket', 'nodehub.service'] as const

export type UnitName = (typeof unitNames)[number]

/**
 * The hub as a systemd service whose listening sockets systemd holds: while the hub is down, restarts or crashes, connections wait, and no other
 * user of the node can take its ports. What bin/assemble.js makes lies in /opt/nodehub, and Node is /usr/local/bin/node.
 */
export function systemdUnits({
  args,
  ports,
  nodeName,
}: SystemdUnitsOptions): Readonly<Record<UnitName, string>> {
  const node = nodeName === undefined ? '' : `Environment=${word(`NODE_NAME=${nodeName}`)}\n`
  return {
    'nodehub.socket': `[Unit]
Description=Listening sockets of nodehub

[Socket]
${streams('127.0.0.1', ports)}
# The sockets stay open however often the hub is started.
TriggerLimitIntervalSec=0

[Install]
WantedBy=sockets.target
`,
    'nodehub-ipv6.socket': `[Unit]
Description=Listening sockets of nodehub over IPv6
# A kernel without IPv6 has no such sockets, and none of the other units needs them.
ConditionPathExists=/proc/net/if_inet6

[Socket]
Service=nodehub.service
${streams('[::1]', ports)}
# Also while loopback has no IPv6 address (net.ipv6.conf.lo.disable_ipv6).
FreeBind=true
TriggerLimitIntervalSec=0

[Install]
WantedBy=sockets.target
`,
    'nodehub.service': `[Unit]
Description=nodehub
Requires=nodehub.socket
Wants=nodehub-ipv6.socket
After=nodehub.socket nodehub-ipv6.socket network.target
# The ports are the same.
Conflicts=yurthub.service
# At a limit of starts systemd would close the sockets, too.
StartLimitIntervalSec=0

[Service]
# The hub does not speak sd_notify(3). What connects before it is ready waits.
Type=exec
${node}Environment=MALLOC_ARENA_MAX=1
# No Secrets in core dumps.
LimitCORE=0
ExecStart=/usr/local/bin/node --disable-sigusr1 --max-semi-space-size=4 /opt/nodehub/dist/src/main.js ${args.map(word).join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=1
TimeoutStopSec=20

[Install]
WantedBy=multi-user.target
`,
  }
}

const streams = (address: string, ports: HubPorts): string =>
  [ports.proxy, ports.ops, ports.secure].map((port) => `ListenStream=${address}:${port}`).join('\n')

/** A word of a command line or an assignment as systemd reads it (systemd.service(5), systemd.syntax(7)). */
function word(text: string): string {
  const plain = text.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[^\s"'\\;]+$/.test(plain) ? plain : `"${plain.replace(/["\\]/g, '\\$&')}"`
}
