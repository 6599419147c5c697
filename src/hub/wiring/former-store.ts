import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Cloud } from '../upstream/cloud.ts'
import type { KnownCluster } from '../upstream/known-cluster.ts'

/** The database of releases before 0.3.0, which this one does not read. */
const database = /^objects\.db(-wal|-shm)?$/

const formerFiles = (cachePath: string): readonly string[] =>
  existsSync(cachePath) ? readdirSync(cachePath).filter((name) => database.test(name)) : []

/** What a start does with the store of a former release; `undefined`: there is none. */
export const formerStoreNote = (cachePath: string): string | undefined =>
  formerFiles(cachePath).length === 0
    ? undefined
    : `${cachePath} has the cache of a release before 0.3.0: start sets it aside and begins an empty one where an API server answers, and is refused where none does`

/** The node may have nothing else to boot from. */
class FormerStore extends Error {
  readonly code = 'FORMER_STORE'
}

/**
 * Rejects where there is the store of a former release and no API server answers, from which all
 * can be read again; to be called before anything is written. Resolves with what sets it aside, to
 * be called when this process has the folder to itself.
 */
export async function checkFormer(
  cachePath: string,
  { cluster, cloud, log }: FormerStoreParts,
): Promise<() => void> {
  const files = formerFiles(cachePath)
  if (files.length === 0) return () => undefined
  const online = cloud.onlineKnown().then(() => cloud.online === true)
  if (!(await Promise.race([cluster.answered.then(() => true), online])))
    throw new FormerStore(
      `${cachePath} has the cache of a release before 0.3.0, which this one cannot read, and no API server answers: start the former release, or this one when there is a link; to begin with an empty cache, move objects.db* away`,
    )
  return () => {
    for (const name of files) renameSync(join(cachePath, name), join(cachePath, `${name}.former`))
    log.warn(
      { aside: join(cachePath, 'objects.db.former') },
      'the cache of a release before 0.3.0 is set aside, and begins empty',
    )
  }
}

interface FormerStoreParts {
  readonly cluster: Pick<KnownCluster, 'answered'>
  readonly cloud: Pick<Cloud, 'online' | 'onlineKnown'>
  readonly log: Logger
}
