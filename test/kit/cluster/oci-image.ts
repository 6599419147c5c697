import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type TarEntry, tar } from './tar.ts'

/** The one image test pods are made of; pods name it with `imagePullPolicy: Never`. */
export const busyboxImage = 'test.local/busybox:1'

const applets = [
  'sh',
  'tar',
  'sleep',
  'httpd',
  'nc',
  'cat',
  'echo',
  'wget',
  'ls',
  'env',
  'date',
  'kill',
]

/** Waits to be told to end, as a pod's sandbox does, and as a container without a command may. */
const pauseScript = '#!/bin/sh\ntrap exit TERM INT\nwhile :; do sleep 3600 & wait; done\n'

/**
 * Writes an OCI archive of `busyboxImage` around a statically linked busybox: pulling needs a
 * network, which the machine may not have.
 */
export function writeBusyboxImage(busybox: string, path: string): void {
  writeFileSync(
    path,
    ociArchive(
      busyboxImage,
      ['/pause'],
      [
        { path: 'bin/', folder: true },
        { path: 'etc/', folder: true },
        { path: 'tmp/', folder: true, mode: 0o1777 },
        { path: 'bin/busybox', data: readFileSync(busybox), mode: 0o755 },
        ...applets.map((name) => ({ path: `bin/${name}`, link: 'busybox' })),
        { path: 'pause', data: Buffer.from(pauseScript), mode: 0o755 },
      ],
    ),
  )
}

/** Writes an OCI archive of an image of one statically linked program, and nothing else. */
export function writeProgramImage(name: string, program: string, path: string): void {
  const file = basename(program)
  const rootfs: TarEntry[] = [{ path: file, data: readFileSync(program), mode: 0o755 }]
  writeFileSync(path, ociArchive(name, [`/${file}`], rootfs))
}

function ociArchive(
  name: string,
  entrypoint: readonly string[],
  rootfs: readonly TarEntry[],
): Buffer {
  const blobs: TarEntry[] = []
  const blob = (data: Buffer): { digest: string; size: number } => {
    const hash = createHash('sha256').update(data).digest('hex')
    blobs.push({ path: `blobs/sha256/${hash}`, data })
    return { digest: `sha256:${hash}`, size: data.byteLength }
  }
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
  const type = (kind: string): string => `application/vnd.oci.image.${kind}`

  const layer = blob(tar(rootfs))
  const config = blob(
    json({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Entrypoint: entrypoint, Env: ['PATH=/bin'] },
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    }),
  )
  const manifest = blob(
    json({
      schemaVersion: 2,
      mediaType: type('manifest.v1+json'),
      config: { mediaType: type('config.v1+json'), ...config },
      layers: [{ mediaType: type('layer.v1.tar'), ...layer }],
    }),
  )
  const index = {
    schemaVersion: 2,
    manifests: [
      {
        mediaType: type('manifest.v1+json'),
        ...manifest,
        annotations: { 'io.containerd.image.name': name },
      },
    ],
  }
  return tar([
    { path: 'oci-layout', data: json({ imageLayoutVersion: '1.0.0' }) },
    { path: 'index.json', data: json(index) },
    ...blobs,
  ])
}
