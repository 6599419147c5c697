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
    const documents = [...state.documents.values()]
      .map(({ document }) => document)
      .filter(([identity, path]) => identity.startsWith(holders) && path === what.path)
    return { kind: 'evict', collections: [], objects: [], documents }
  }
  const { group, resource } = what.gvr
  const scopes = [...state.scopes.values()].filter(
    ({ key }) => key[0].startsWith(holders) && key[2] === group && key[4] === resource,
  )
  if (what.of === 'collections') {
    const collections = scopes
      .flatMap((scope) => [...scope.collections.values()])
      .map(({ address }) => address)
      .filter((address) => isPartOf(what, address))
    return { kind: 'evict', collections, objects: [], documents: [] }
  }
  const objects = scopes.flatMap(({ key, records }) =>
    [...records.values()]
      .filter(({ held }) => held.namespace === what.namespace)
      .filter(({ held }) => what.name === undefined || held.name === what.name)
      .map(({ held }) => [key, held.namespace, held.name] as const),
  )
  return { kind: 'evict', collections: [], objects, documents: [] }
}

/** Whether a list that is refused is a part of the collection, or all of it. */
function isPartOf({ namespace, name }: Withdrawal, of: CollectionAddress): boolean {
  const fields = new URLSearchParams({ fieldSelector: of.fieldSelector })
  const ofName = namedBySelector({ query: fields })
  const isOfNames = ofName === undefined || ofName === name
  return isOfNames && (of.namespace === '' || of.namespace === namespace)
}
