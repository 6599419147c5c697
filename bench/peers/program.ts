import { findBinaries } from '../../test/kit/cluster/binaries.ts'

/** Why a program cannot be a peer; `undefined` where it is there. */
export function missingProgram(name: string): string | undefined {
  const found = findBinaries([name])
  return 'missing' in found ? found.missing : undefined
}

/** The path of a program. Throws where it is missing. */
export function programPath<Name extends string>(name: Name): string {
  const found = findBinaries([name])
  if ('missing' in found) throw new Error(found.missing)
  return found.paths[name]
}
