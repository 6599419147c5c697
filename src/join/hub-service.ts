import { systemctl } from './kubelet-service.ts'
import { unitNames } from './systemd-units.ts'

const service = 'nodehub.service'

/** The same as `startHub` for a shell, where all of the units are new. */
export const startingHub = `systemctl daemon-reload && systemctl restart ${unitNames.join(' ')}`

/** The same as `stopHub` for a shell. */
export const stoppingHub = `systemctl stop ${unitNames.join(' ')}`

/**
 * Has systemd read its units anew and start the hub by them; one that runs is restarted. The sockets
 * are opened anew only where `changed` has their units: meanwhile another program could take the
 * ports. Resolves to why that failed; `undefined` when it did not.
 */
export async function startHub(changed: readonly string[]): Promise<string | undefined> {
  const isChanged = unitNames.some(
    (name) => name !== service && changed.some((path) => path.endsWith(`/${name}`)),
  )
  return (
    (await systemctl('daemon-reload')) ??
    systemctl('restart', ...(isChanged ? unitNames : [service]))
  )
}

/** Stops the hub and closes its sockets. Resolves to why that failed; `undefined` when it did not. */
export const stopHub = (): Promise<string | undefined> => systemctl('stop', ...unitNames)

/** Has systemd forget units whose files are gone. Resolves to why that failed; `undefined` when it did not. */
export const forgetUnits = (): Promise<string | undefined> => systemctl('daemon-reload')
