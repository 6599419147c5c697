import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findBinaries } from '../kit/cluster/binaries.ts'
import type { Workspace } from '../kit/cluster/workspace.ts'

const sources = join(import.meta.dirname, 'programs')

/**
 * Compiles one of the programs made of client-go into the workspace, statically linked: it also
 * runs in an image that has nothing else. Returns the reason why that cannot be done here: no Go,
 * or no way to the modules it is made of; throws where the program itself is wrong.
 */
export async function compileProgram(
  workspace: Workspace,
  name: 'in-cluster' | 'reflector',
): Promise<{ readonly program: string } | { readonly missing: string }> {
  const found = findBinaries(['go'])
  if ('missing' in found) return found
  const program = workspace.file(name)
  const go = (...args: string[]): Promise<unknown> =>
    promisify(execFile)(found.paths.go, args, {
      cwd: sources,
      timeout: 300_000,
      env: { ...process.env, CGO_ENABLED: '0' },
    })
  try {
    await go('mod', 'download')
  } catch (error) {
    return {
      missing: `the modules of client-go cannot be had: ${String(error).replaceAll(/\s+/g, ' ').slice(0, 300)}`,
    }
  }
  await go('build', '-buildvcs=false', '-ldflags=-s -w', '-o', program, `./${name}`)
  return { program }
}
