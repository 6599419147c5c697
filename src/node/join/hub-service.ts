import { systemctl } from './kubelet-service.ts'
import { unitNames } from './systemd-units.ts'

/** The same as `startHub` for a shell. */
export const startHubCommand = `systemctl daemon-reload && systemctl restart ${unitNames.join(' ')}`

/** The same as `stopHub` for a shell. */
export const stopHubCommand = `systemctl stop ${unitNames.join(' ')}`

/**
 * Has systemd read its units anew and start the hub by them; one that runs is restarted. Its
 * sockets are opened anew as well: what a join before this one has written may never have been put
 * into effect, and a hub does not start on sockets at ports that are not its own. Resolves to why
 * that failed; `undefined` when it did not.
 */
export const startHub = async (): Promise<string | undefined> =>
  (await systemctl('daemon-reload')) ?? systemctl('restart', ...unitNames)

/**
 * Stops the hub and closes its sockets. Resolves to why that failed; `undefined` when it did not.
 */
export const stopHub = (): Promise<string | undefined> => systemctl('stop', ...unitNames)

/**
 * Has systemd forget units whose files are gone. Resolves to why that failed; `undefined` when it
 * did not.
 */
export const forgetUnits = (): Promise<string | undefined> => systemctl('daemon-reload')
