import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { findBinaries } from '../../kit/cluster/binaries.ts'
import { buildProject, makeRootfs } from '../../kit/built-project.ts'
import type { Workspace } from '../../kit/cluster/workspace.ts'

const exec = promisify(execFile)

const tools = ['buildah', 'ldd'] as const

export const hubImage = 'localhost/nodehub:test'

/** Why no image can be built here, as the reason of a skipped test; `undefined` if one can. */
export function noImageTools(): string | undefined {
  const found = findBinaries(tools)
  return 'missing' in found ? `no image: ${found.missing}` : undefined
}

/** A container image in an archive for import. */
export interface BuiltImage {
  readonly archive: string
  /** What a registry would send: layers compressed. */
  readonly bytes: number
  /** Builds the same under another name, or one that starts with these words. */
  readonly startingWith: (name: string, words?: readonly string[]) => Promise<string>
}

/**
 * Builds the hub as it is now and the image from the project's Dockerfile, in the workspace and
 * without a network: the base is this process's own Node with the libraries it is linked to.
 */
export async function buildImage(workspace: Workspace): Promise<BuiltImage> {
  const found = findBinaries(tools)
  if ('missing' in found) throw new Error(found.missing)
  const { buildah, ldd } = found.paths
  const [context, rootfs] = await Promise.all([
    buildProject(workspace.file('context')),
    makeRootfs(workspace.file('rootfs'), ldd),
  ])
  // prettier-ignore
  const storage = [
    '--storage-driver', 'vfs', '--root', workspace.file('images'), '--runroot', workspace.file('images-run'),
  ]
  const run = async (...args: string[]): Promise<string> => {
    const { stdout } = await exec(buildah, [...storage, ...args], { maxBuffer: 16 * 1024 * 1024 })
    return stdout.trim()
  }
  const base = await run('from', 'scratch')
  await run('copy', base, rootfs, '/')
  await run('commit', '--quiet', '--rm', base, 'localhost/node:26')
  // prettier-ignore
  await run(
    'bud', '--quiet', '--isolation', 'chroot', '--build-arg', 'BASE=localhost/node:26', '--tag', hubImage, context,
  )
  const archiveOf = async (image: string): Promise<string> => {
    const archive = workspace.file(`${basename(image.replaceAll(':', '-'))}.tar`)
    await run('push', '--quiet', image, `oci-archive:${archive}:${image}`)
    return archive
  }
  const archive = await archiveOf(hubImage)
  return {
    archive,
    bytes: statSync(archive).size,
    async startingWith(name, words) {
      const copy = await run('from', '--pull-never', hubImage)
      if (words) await run('config', '--entrypoint', JSON.stringify(words), copy)
      await run('commit', '--quiet', '--rm', copy, name)
      return archiveOf(name)
    },
  }
}
