import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { findBinaries } from '../../kit/cluster/binaries.ts'
import { plainNode } from '../../kit/cluster/plain-node.ts'
import type { Workspace } from '../../kit/cluster/workspace.ts'

const exec = promisify(execFile)

const tools = ['buildah', 'ldd'] as const

const project = join(import.meta.dirname, '..', '..', '..')

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
}

/**
 * Builds the hub as it is now and the image from the project's Dockerfile, in the workspace and
 * without a network: the base is this process's own Node with the libraries it is linked to.
 */
export async function buildImage(workspace: Workspace): Promise<BuiltImage> {
  const found = findBinaries(tools)
  if ('missing' in found) throw new Error(found.missing)
  const { buildah, ldd } = found.paths
  const [context, rootfs] = await Promise.all([makeContext(workspace), makeRootfs(workspace, ldd)])
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
  const archive = workspace.file('nodehub.tar')
  await run('push', '--quiet', hubImage, `oci-archive:${archive}:${hubImage}`)
  return { archive, bytes: statSync(archive).size }
}

/**
 * What the Dockerfile takes from the project, with a build of its own: the project's may be
 * another's.
 */
async function makeContext(workspace: Workspace): Promise<string> {
  const context = workspace.file('context')
  mkdirSync(join(context, 'bin'), { recursive: true })
  const compiler = join(project, 'node_modules', 'typescript', 'bin', 'tsc')
  const config = join(project, 'tsconfig.build.json')
  await exec(...plainNode(compiler, '-p', config, '--outDir', join(context, 'dist')))
  await exec(...plainNode(join(project, 'bin', 'bundle.js'), join(context, 'dist')))
  for (const file of [
    'Dockerfile',
    '.dockerignore',
    'LICENSE',
    'package.json',
    'package-lock.json',
  ])
    copyFileSync(join(project, file), join(context, file))
  copyFileSync(join(project, 'bin', 'assemble.js'), join(context, 'bin', 'assemble.js'))
  for (const path of productionPackages())
    cpSync(join(project, path), join(context, path), { recursive: true })
  return context
}

function productionPackages(): string[] {
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }>
  }
  return Object.entries(packages)
    .filter(
      ([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional,
    )
    .map(([path]) => path)
}

/** Node and what the loader says it needs, each where it is looked for. */
async function makeRootfs(workspace: Workspace, ldd: string): Promise<string> {
  const rootfs = workspace.file('rootfs')
  const { stdout } = await exec(ldd, [process.execPath])
  const libraries = stdout.match(/\/\S+(?= \(0x)/g) ?? []
  const put = (from: string, to: string): void => {
    mkdirSync(dirname(join(rootfs, to)), { recursive: true })
    copyFileSync(realpathSync(from), join(rootfs, to))
  }
  put(process.execPath, '/usr/local/bin/node')
  for (const library of libraries) put(library, library)
  mkdirSync(join(rootfs, 'tmp'), { mode: 0o777 })
  return rootfs
}
