import { program } from './runnable.ts'
import type { HubPorts } from './static-pod.ts'

/**
 * Drop-ins that make systemd start the units at boot, as the links of `systemctl enable` would. As
 * plain files, a join writes them into an image as on a node, and leave removes them.
 */
export const targetDropIns = {
  'sockets.target.d/nodehub.conf': `[Unit]
Wants=nodehub.socket nodehub-ipv6.socket
`,
  'multi-user.target.d/nodehub.conf': `[Unit]
Wants=nodehub.service
`,
} as const

/** The settings of the hub's units. */
export interface SystemdUnitsOptions {
  /** The arguments of the hub: `start` and its flags. */
  readonly args: readonly string[]
  /** `--root-dir` among them: all that the hub may write. */
  readonly rootDir: string
  readonly ports: HubPorts
  /** The node's name; absent: the host's. */
  readonly nodeName: string | undefined
  /** The path of Node. */
  readonly runtime: string
}

/** The units by their file names, in the order in which they depend on each other. */
export const unitNames = ['nodehub.socket', 'nodehub-ipv6.socket', 'nodehub.service'] as const

export type UnitName = (typeof unitNames)[number]

/** Makes systemd read its units again, and drop those whose files are gone. */
export const reloadUnits = 'systemctl daemon-reload'

/**
 * (Re)starts the hub from its units. Its sockets are reopened as well: those of an earlier join may
 * not be in effect yet, and a hub does not start on sockets at other ports.
 */
export const startHub = `${reloadUnits} && systemctl restart ${unitNames.join(' ')}`

/** Stops the hub and closes its sockets. */
export const stopHub = `systemctl stop ${unitNames.join(' ')}`

/**
 * The hub as a systemd service whose listening sockets systemd holds: while the hub is down,
 * restarts or crashes, connections wait, and no other user of the node can take its ports. The
 * files that bin/assemble.js makes are in /opt/nodehub.
 */
export function systemdUnits({
  args,
  rootDir,
  ports,
  nodeName,
  runtime,
}: SystemdUnitsOptions): Readonly<Record<UnitName, string>> {
  const node = nodeName === undefined ? '' : `Environment=${value(`NODE_NAME=${nodeName}`)}\n`
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
# The hub does not speak sd_notify(3). Clients that connect before it is ready wait.
Type=exec
${node}Environment=MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536
# No Secrets in core dumps.
LimitCORE=0
# Of this the hub derives its own limits (--memory-limit).
MemoryMax=512M
${confinement(rootDir)}
# Outside the confinement, which takes a folder that is there.
ExecStartPre=+/bin/mkdir -p -m 0700 ${word(rootDir)}
ExecStart=${runtime} --disable-sigusr1 --max-semi-space-size=4 ${program} ${args.map(word).join(' ')}
# The shell's kill: a minimal Debian has no other.
ExecReload=/bin/sh -c "kill -HUP \${MAINPID}"
Restart=always
RestartSec=1
TimeoutStopSec=20

[Install]
WantedBy=multi-user.target
`,
  }
}

/**
 * Restrictions of the hub (systemd.exec(5)). It runs as root, since only root can read the
 * kubelet's certificates, but without capabilities: systemd passes the sockets, whatever their
 * ports are, and the socket table is readable for every user. No MemoryDenyWriteExecute: V8
 * compiles.
 */
const confinement = (rootDir: string): string => `CapabilityBoundingSet=
ReadWritePaths=${value(rootDir)}
ProtectHome=${/^\/(?:home|root)(?:\/|$)/.test(rootDir) ? 'read-only' : 'true'}
${restrictions}`

/** Those of every unit. */
export const restrictions = `NoNewPrivileges=true
ProtectSystem=strict
PrivateTmp=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectKernelLogs=true
ProtectControlGroups=true
ProtectClock=true
ProtectHostname=true
# The hub reads the node's addresses by netlink.
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
LockPersonality=true
SystemCallArchitectures=native
UMask=0077`

const streams = (address: string, ports: HubPorts): string =>
  [ports.proxy, ports.ops, ports.secure].map((port) => `ListenStream=${address}:${port}`).join('\n')

/** A word of a command line in systemd's syntax (systemd.service(5)). */
const word = (text: string): string => value(text.replaceAll('$', '$$$$'))

/** A path or an assignment as systemd reads it (systemd.syntax(7)). */
function value(text: string): string {
  const plain = text.replaceAll('%', '%%')
  return /^[^\s"'\\;]+$/.test(plain) ? plain : `"${plain.replace(/["\\]/g, '\\$&')}"`
}
