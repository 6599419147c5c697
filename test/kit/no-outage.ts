import type { Outage } from '../../src/hub/identity/caller.ts'

/** The rules of authentication in a hub that is online. */
export const noOutage: Outage = {
  offline: async () => undefined,
  lastContact: () => undefined,
  onOfflineNode: () => undefined,
}
