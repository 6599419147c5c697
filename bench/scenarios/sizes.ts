/** How much of everything rows make and measure: all of it, or as little as shows that they run. */
export interface Sizes {
  /** Services of a quarter of a megabyte. */
  readonly bigList: number
  /** Watches of one kubelet. */
  readonly crowd: number
  /** Watches of all services, one after the other. */
  readonly fanOut: readonly { readonly watchers: number; readonly perSecond: number }[]
  readonly filtered: readonly number[]
  /** Services of one namespace, for long lists. */
  readonly many: number
  readonly growth: {
    readonly objects: readonly number[]
    readonly bytes: readonly number[]
    readonly watchers: readonly number[]
    readonly filters: readonly number[]
  }
}

export const fullSizes: Sizes = {
  bigList: 200,
  // What a node dense with pods comes to: about two watches for each Secret and ConfigMap that its
  // pods mount.
  crowd: 600,
  fanOut: [
    { watchers: 50, perSecond: 100 },
    { watchers: 1000, perSecond: 10 },
  ],
  filtered: [500, 5000],
  many: 5000,
  growth: {
    objects: [10, 100, 1000, 5000, 20_000],
    // The last is near the most that an API server takes (validation.go, MaxSecretSize: 1 MiB).
    bytes: [1000, 10_000, 100_000, 1_000_000],
    watchers: [1, 10, 100, 500, 2000],
    filters: [1, 2, 4, 8],
  },
}
