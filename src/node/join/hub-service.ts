import { systemctl } from './kubelet-service.ts'
import { unitNames } from './systemd-units.ts'

/** `startHub` as a shell command. */
export const startHubCommand = `systemctl daemon-reload && systemctl restart ${unitNames.join(' ')}`

/** `stopHub` as a shell command. */
export const stopHubCommand = `systemctl stop ${unitNames.join(' ')}`

/**
 * Makes systemd read its units and (re)start the hub from them. Its sockets are reopened as well:
 * those of an earlier join may not be in effect yet, and a hub does not start on sockets at other
 * ports. Resolves to the reason of a failure; `undefined` on success.
 */
export const startHub = async (): Promise<string | undefined> =>
  (await systemctl('daemon-reload')) ?? systemctl('restart', ...unitNames)

/**
 * Stops the hub and closes its sockets. Resolves to why that failed; `undefined` when it did not.
 */
export const stopHub = (): Promise<string | undefined> => systemctl('stop', ...unitNames)

/**
 * Makes systemd drop units whose files are gone. Resolves to the reason of a failure; `undefined`
 * on success.
 */
export const forgetUnits = (): Promise<string | undefined> => systemctl('daemon-reload')
