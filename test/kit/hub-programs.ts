import { join } from 'node:path'

/**
 * Names the folder in which a run has each program of a hub as one file (test/tiers/bundles.ts);
 * absent where a test file runs by itself.
 */
export const bundlesVariable = 'NODEHUB_TEST_BUNDLES'

const bundles = process.env[bundlesVariable]
const project = join(import.meta.dirname, '..', '..')

const program = (name: string, source: string): string =>
  bundles === undefined ? join(project, source) : join(bundles, `${name}.js`)

/** The command `nodehub`. */
export const nodehubProgram = program('main', 'src/main.ts')

/** A hub that a test can kill, which says where it listens. */
export const hubProgram = program('hub-main', 'test/kit/hub-main.ts')
