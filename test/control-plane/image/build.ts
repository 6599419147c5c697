import { execFile } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
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

/** An image whose files can be looked at, and in which a program can be run. */
export interface OpenImage {
  readonly architecture: string
  /** What container runtimes run to find out about its health. */
  readonly healthCheck: readonly string[]
  readonly root: string
  /** Resolves to the exit code, on the network of this machine. */
  run(words: readonly string[], environment: Readonly<Record<string, string>>): Promise<number>
}

interface ImageFacts {
  readonly Docker: {
    readonly architecture: string
    readonly config: { readonly Healthcheck: { readonly Test: readonly string[] } }
  }
}

/** A container image in an archive for import. */
export interface BuiltImage {
  readonly archive: string
  /** What a registry would send: layers compressed. */
  readonly bytes: number
  /** Builds the same under another name, or one that starts with these words. */
  readonly startingWith: (name: string, words?: readonly string[]) => Promise<string>
  /** Builds the same for arm64, on a base that has no program of this processor. */
  readonly forArm64: () => Promise<OpenImage>
  readonly open: () => Promise<OpenImage>
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
  const assembling = ['--isolation', 'chroot', '--format', 'docker']
  const base = await run('from', 'scratch')
  await run('copy', base, rootfs, '/')
  await run('commit', '--quiet', '--rm', base, 'localhost/node:26')
  // prettier-ignore
  await run(
    'bud', '--quiet', ...assembling, '--build-arg', 'BASE=localhost/node:26', '--tag', hubImage, context,
  )
  const opened = async (image: string): Promise<OpenImage> => {
    const container = await run('from', '--pull-never', image)
    const { Docker } = JSON.parse(await run('inspect', '--type', 'image', image)) as ImageFacts
    const [, ...healthCheck] = Docker.config.Healthcheck.Test
    return {
      architecture: Docker.architecture,
      healthCheck,
      root: await run('mount', container),
      async run(words, environment) {
        const variables = Object.entries(environment).map(
          ([name, value]) => `--env=${name}=${value}`,
        )
        return run('run', '--isolation', 'chroot', ...variables, container, '--', ...words).then(
          () => 0,
          (cause: { readonly code?: number }) => cause.code ?? -1,
        )
      },
    }
  }
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
    open: () => opened(hubImage),
    async forArm64() {
      const name = 'localhost/nodehub:arm64'
      const node = workspace.file('node-of-arm64')
      writeFileSync(node, 'for another processor')
      const scratch = await run('from', '--arch', 'arm64', 'scratch')
      await run('config', '--arch', 'arm64', scratch)
      await run('copy', scratch, node, '/usr/local/bin/node')
      const id = await run('commit', '--quiet', '--rm', scratch, 'localhost/node-arm64:26')
      const here = process.arch === 'x64' ? 'amd64' : process.arch
      // prettier-ignore
      await run(
        'bud', '--quiet', ...assembling, '--platform', 'linux/arm64', '--build-arg', `BASE=${id}`,
        '--build-arg', 'ASSEMBLY=localhost/node:26', '--build-arg', `BUILDPLATFORM=linux/${here}`, '--tag', name, context,
      )
      return opened(name)
    },
  }
}
