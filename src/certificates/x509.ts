import type * as X509 from '@peculiar/x509'

/**
 * Loads @peculiar/x509 when the first certificate or request is made: it takes a tenth of a second
 * of CPU and 24 MB of memory, which a hub that finds its certificates stored does not spend.
 */
export function loadX509(): Promise<typeof X509> {
  // Its container of algorithms reads metadata of decorators, and none of its classes has any: a
  // polyfill with a store for them would stay empty.
  if (!('getMetadata' in Reflect))
    Object.assign(Reflect, { getMetadata: () => undefined, getOwnMetadata: () => undefined })
  return import('@peculiar/x509')
}
