import { namedBySelector } from '../../../api/request/request-info.ts'
import type { DocumentKey, Withdrawal } from '../store.ts'
import type { CollectionAddress } from './address.ts'
import type { EvictRecord } from './record.ts'
import type { State } from './state.ts'

/** What is stored of it. */
export function withdrawnOf(
  state: State,
  holders: string,
  what: Withdrawal | DocumentKey,
): EvictRecord {
  if ('path' in what) {
    const documents = [...state.documents.values()].flatMap(({ document }) =>
      document[0].startsWith(holders) && document[1] === what.path ? [document] : [],
    )
    return { kind: 'evict', collections: [], objects: [], documents }
  }
  const { group, resource } = what.gvr
  const scopes = [...state.scopes.values()].filter(
    ({ key }) => key[0].startsWith(holders) && key[2] === group && key[4] === resource,
  )
  const isAsked = what.of === 'collections'
  const collections = scopes.flatMap((scope) =>
    isAsked
      ? [...scope.collections.values()].flatMap(({ address }) =>
          isPartOf(what, address) ? [address] : [],
        )
      : [],
  )
  const objects = scopes.flatMap(({ key, records }) =>
    isAsked
      ? []
      : [...records.values()].flatMap(({ held: { namespace, name } }) =>
          namespace === what.namespace && (what.name ?? name) === name
            ? [[key, namespace, name] as const]
            : [],
        ),
  )
  return { kind: 'evict', collections, objects, documents: [] }
}

/** Whether a list that is refused is a part of the collection, or all of it. */
function isPartOf({ namespace, name }: Withdrawal, of: CollectionAddress): boolean {
  const fields = new URLSearchParams({ fieldSelector: of.fieldSelector })
  const ofName = namedBySelector({ query: fields })
  const isOfNames = ofName === undefined || ofName === name
  return isOfNames && (of.namespace === '' || of.namespace === namespace)
}
