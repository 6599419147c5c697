import { addressArguments } from '../../base/iproute2.ts'
import { dummyInterfaceOf, type DummyInterfaceConfig } from '../../config/dummy-interface.ts'
import type { WrittenFile } from './hub-files.ts'
import type { NodeFiles } from './node-files.ts'
import { isSystemdThere } from './runnable.ts'
import { restrictions } from './systemd-units.ts'

export const dummyUnitName = 'nodehub-dummy.service'

/** The files of the unit, which makes the interface at each boot. */
export const dummyUnitPaths = {
  unit: `/etc/systemd/system/${dummyUnitName}`,
  /** As the link of `systemctl enable` would, and as a plain file. */
  start: '/etc/systemd/system/multi-user.target.d/nodehub-dummy.conf',
} as const

/** Of iproute2. */
const program = '/sbin/ip'

/** Whether the unit can make an interface on the node at `root`. */
export const canMakeDummy = (files: NodeFiles, root: string): boolean =>
  isSystemdThere(files, root) && files.isThere(program)

/** A hub knows by it that it has not made the interface, and lets it stay. */
const mark = 'made by nodehub join'

/** Where a hub looks for it by default, or whose flags have this address and this name. */
export const joinedDummy = (address?: string, name?: string): DummyInterfaceConfig | undefined =>
  dummyInterfaceOf({
    'enable-dummy-if': true,
    'dummy-if-name': name,
    'dummy-if-ip': address,
    'node-ip': undefined,
  })

/**
 * A unit that makes the interface at whose address pods reach the hub. The hub itself may not, as a
 * static pod or a service: it would need CAP_NET_ADMIN for as long as it runs, and with that may
 * change every route of the node. The unit needs it for a moment.
 */
export const dummyUnit = ({
  name,
  address,
}: DummyInterfaceConfig): string => `# The interface at which pods reach the hub (docs/ports-and-pod-access.md).
[Unit]
Description=The interface at which pods reach nodehub
Before=nodehub.service kubelet.service
ConditionPathExists=${program}

[Service]
Type=oneshot
RemainAfterExit=true
CapabilityBoundingSet=CAP_NET_ADMIN
ProtectHome=true
${restrictions}
# One that something else has made is used, and stays.
ExecStart=/bin/sh -c 'ip link show dev ${name} >/dev/null 2>&1 || { ip link add dev ${name} type dummy && { ip link set dev ${name} alias "${mark}" && ip ${addressArguments(name, address).join(' ')} && ip link set dev ${name} up || { ip link delete dev ${name}; exit 1; }; }; }'
ExecStop=/bin/sh -c 'if ip link show dev ${name} | grep -qF "alias ${mark}"; then ip link delete dev ${name}; fi'

[Install]
WantedBy=multi-user.target
`

/** The files, where a hub looks for an interface at all. */
export function dummyUnitFiles(address: string | undefined): readonly WrittenFile[] {
  const dummy = joinedDummy(address)
  if (!dummy) return []
  return [
    { path: dummyUnitPaths.unit, mode: 0o644, content: dummyUnit(dummy) },
    { path: dummyUnitPaths.start, mode: 0o644, content: `[Unit]\nWants=${dummyUnitName}\n` },
  ]
}

/** Makes the interface now. */
export const makeDummy = `systemctl daemon-reload && systemctl restart ${dummyUnitName}`

/** Removes it. */
export const removeDummy = `systemctl stop ${dummyUnitName}`
