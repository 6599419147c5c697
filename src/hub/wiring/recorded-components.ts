import type { LiveConfig } from '../../config/hub-config.ts'

/**
 * The components whose answers are recorded: those of the configuration, and those that the
 * cluster's ConfigMap adds. `*` stands for all.
 */
export class RecordedComponents {
  readonly #live: () => LiveConfig
  #added: ReadonlySet<string> = new Set()

  constructor(live: () => LiveConfig) {
    this.#live = live
  }

  /** Replaces the components that were added before. */
  add(components: ReadonlySet<string>): void {
    this.#added = components
  }

  has(component: string): boolean {
    return [this.#live().cacheComponents, this.#added].some(
      (names) => names.has('*') || names.has(component),
    )
  }
}
