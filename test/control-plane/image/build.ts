import { execFile } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { findBinaries } from '../../kit/cluster/binaries.ts'
import { buildProject, makeRootfs } from '../../kit/built-project.ts'
import { takesOverlays } from '../../kit/cluster/overlay.ts'
import type { Workspace } from '../../kit/cluster/workspace.ts'
import { onceInARun } from '../../kit/once-in-a-run.ts'

const exec = promisify(execFile)

const tools = ['buildah', 'ldd'] as const

export const hubImage = 'localhost/nodehub:test'

/** Why no image can be built here, as the reason of a skipped test; `undefined` if one can. */
export function noImageTools(): string | undefined {
  const found = findBinaries(tools)
  return 'missing' in found ? `no image: ${found.missing}` : undefined
}

/** An image whose files can be looked at, and in which a program can be run, until disposed of. */
export interface OpenImage extends AsyncDisposable {
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
  /** Resolves to what a registry would send: layers compressed. */
  readonly bytes: () => Promise<number>
  /** Puts the same image into an archive under another name. */
  readonly named: (name: string) => Promise<string>
  /** Builds one that starts with these words, under a name of its own. */
  readonly startingWith: (name: string, words: readonly string[]) => Promise<string>
  /** Builds the same for arm64, on a base that has no program of this processor. */
  readonly forArm64: () => Promise<OpenImage>
  readonly open: () => Promise<OpenImage>
}

/** The images of a folder, and how buildah is run on them. */
class Images {
  readonly #folder: string
  readonly #buildah: string
  readonly #driver: string

  constructor(folder: string, buildah: string) {
    this.#folder = folder
    this.#buildah = buildah
    this.#driver = takesOverlays(folder) ? 'overlay' : 'vfs'
  }

  /** What the image is built from. */
  get context(): string {
    return join(this.#folder, 'context')
  }

  /** Resolves to what buildah prints. */
  async run(...args: readonly string[]): Promise<string> {
    const [root, runRoot] = [join(this.#folder, 'images'), join(this.#folder, 'images-run')]
    const storage = ['--storage-driver', this.#driver, '--root', root, '--runroot', runRoot]
    const all = [...storage, ...args]
    const { stdout } = await exec(this.#buildah, all, { maxBuffer: 16 * 1024 * 1024 })
    return stdout.trim()
  }

  /** Builds the hub as it is now, and its image. */
  async build(ldd: string): Promise<void> {
    const [context, rootfs] = await Promise.all([
      buildProject(this.context),
      makeRootfs(join(this.#folder, 'rootfs'), ldd),
    ])
    const base = await this.run('from', 'scratch')
    await this.run('copy', base, rootfs, '/')
    await this.run('commit', '--quiet', '--rm', base, nodeImage)
    const arg = `BASE=${nodeImage}`
    await this.run('bud', '--quiet', ...assembling, '--build-arg', arg, '--tag', hubImage, context)
  }
}

const nodeImage = 'localhost/node:26'
const assembling = ['--isolation', 'chroot', '--format', 'docker']

/**
 * Builds the hub as it is now and the image from the project's Dockerfile, once in a run of tests
 * and without a network: the base is this process's own Node with the libraries it is linked to.
 */
export async function buildImage(workspace: Workspace): Promise<BuiltImage> {
  const found = findBinaries(tools)
  if ('missing' in found) throw new Error(found.missing)
  const { buildah, ldd } = found.paths
  const folder = await onceInARun(workspace, 'image', (made) =>
    new Images(made, buildah).build(ldd),
  )
  const images = new Images(folder, buildah)
  const run = images.run.bind(images)
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
      async [Symbol.asyncDispose]() {
        await run('rm', container)
      },
    }
  }
  // Uncompressed, so that neither this nor the import takes the processor.
  const archived = async (image: string, name = image, ...how: string[]): Promise<string> => {
    const archive = workspace.file(`${basename(name.replaceAll(':', '-'))}.tar`)
    await run('push', '--quiet', ...how, image, `oci-archive:${archive}:${name}`)
    return archive
  }
  const archiveOf = (image: string, name = image) => archived(image, name, '--disable-compression')
  return {
    archive: await archiveOf(hubImage),
    bytes: async () => statSync(await archived(hubImage, 'localhost/nodehub:compressed')).size,
    named: (name) => archiveOf(hubImage, name),
    async startingWith(name, words) {
      const copy = await run('from', '--pull-never', hubImage)
      await run('config', '--entrypoint', JSON.stringify(words), copy)
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
        '--build-arg', `ASSEMBLY=${nodeImage}`, '--build-arg', `BUILDPLATFORM=linux/${here}`, '--tag', name, images.context,
      )
      return opened(name)
    },
  }
}
