import type { GVR } from '../api/kube/gvk.ts'
import { listAt, objectAt, optionalTextAt, textAt, valueAt } from '../api/kube/json-at.ts'
import { resourceNotFound, StatusError } from '../api/kube/status.ts'
import { builtinKinds, customKind, type Kind } from './kinds.ts'
import type { KubeObject } from './object.ts'

/**
 * The resources served at a moment: the built-in ones, and those that definitions of custom
 * resources bring.
 */
export class Catalog {
  readonly #custom = new Map<string, readonly Kind[]>()

  /** In the order of discovery: built-in groups, then custom ones. */
  get kinds(): readonly Kind[] {
    return [...builtinKinds, ...[...this.#custom.values()].flat()]
  }

  find({ group, version, resource }: GVR): Kind | undefined {
    return this.kinds.find(
      ({ gvr }) => gvr.group === group && gvr.version === version && gvr.resource === resource,
    )
  }

  /** Throws a StatusError 404 for a resource that is not served. */
  get(gvr: GVR): Kind {
    const kind = this.find(gvr)
    if (!kind) throw new StatusError(resourceNotFound())
    return kind
  }

  hasGroupVersion(group: string, version: string): boolean {
    return this.kinds.some(({ gvr }) => gvr.group === group && gvr.version === version)
  }

  /**
   * Serves the resources that a CustomResourceDefinition defines, in place of those that it defined
   * before.
   */
  define(definition: KubeObject): void {
    this.#custom.set(definition.metadata.name, kindsOf(definition))
  }

  /** Stops serving the kinds of a definition; the caller removes their objects. */
  forget(name: string): readonly Kind[] {
    const gone = this.#custom.get(name) ?? []
    this.#custom.delete(name)
    return gone
  }
}

function kindsOf(definition: KubeObject): Kind[] {
  const names = objectAt(definition, 'spec', 'names')
  const name = textAt(names, 'kind')
  return listAt(definition, 'spec', 'versions')
    .filter((version) => valueAt(version, 'served') === true)
    .map((version) =>
      customKind(
        `${textAt(definition, 'spec', 'group')}/${textAt(version, 'name')}`,
        name,
        textAt(names, 'plural'),
        {
          singular: optionalTextAt(names, 'singular') ?? name.toLowerCase(),
          namespaced: textAt(definition, 'spec', 'scope') === 'Namespaced',
          shortNames: listAt(names, 'shortNames').map(String),
          categories: listAt(names, 'categories').map(String),
          fields: listAt(version, 'selectableFields').map((field) =>
            textAt(field, 'jsonPath').replace(/^\./, ''),
          ),
          hasStatus: valueAt(version, 'subresources', 'status') !== undefined,
        },
      ),
    )
}
