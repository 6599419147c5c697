import type { Logger } from 'pino'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
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

/** As many names are logged: clients choose them. */
const mostNames = 32

/**
 * Names each program once whose lists and watches with the node's credentials are not recorded: it
 * is perhaps one that the node needs to boot.
 */
export class UnrecordedPrograms {
  readonly #log: Logger
  readonly #names = new Set<string>()

  constructor(log: Logger) {
    this.#log = log
  }

  add({ component, identity, info }: Exchange): void {
    if (identity !== nodeIdentity || !info.isResource || this.#names.has(component)) return
    if ((info.verb !== 'list' && info.verb !== 'watch') || this.#names.size >= mostNames) return
    this.#names.add(component)
    this.#log.info(
      { component, resource: qualifiedResource(info.gvr) },
      "what this program reads with the node's credentials is not recorded, and is answered 503 without the cloud; --cache-components names those that are recorded",
    )
  }
}
