import type { AuthenticationRules, Outage } from '../../src/hub/identity/caller.ts'

/** A hub that has accepted no certificate before. */
export const nothingAccepted: AuthenticationRules['accepted'] = {
  add: () => undefined,
  wasGood: () => false,
}

/** The rules of authentication in a hub that is online. */
export const noOutage: Outage = {
  offline: async () => undefined,
  onOfflineNode: () => undefined,
}
