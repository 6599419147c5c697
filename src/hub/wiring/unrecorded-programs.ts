import type { Logger } from 'pino'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'

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
