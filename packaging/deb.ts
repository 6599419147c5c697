import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  forgetUnits,
  onWord,
  purge,
  refuseLaterCache,
  refuseWhileInUse,
  restartHub,
  script,
  stopHub,
} from './maintainer-scripts.ts'
import { configFile, copyPayload, type Payload } from './payload.ts'
import { description, maintainer, summary, type Build } from './package-facts.ts'

/** Builds `nodehub_VERSION_ARCHITECTURE.deb` with dpkg-deb; returns its path. */
export function buildDeb(payload: Payload, { out, work, compression }: Build): string {
  const root = join(work, 'deb')
  copyPayload(payload, root)
  const control = join(root, 'DEBIAN')
  mkdirSync(control, { mode: 0o755 })
  const { version, architecture, bytes } = payload
  writeFileSync(
    join(control, 'control'),
    `Package: nodehub
Version: ${version}
Architecture: ${architecture.debian}
Maintainer: ${maintainer}
Section: admin
Priority: optional
Installed-Size: ${Math.ceil(bytes / 1024)}
Depends: libc6 (>= 2.28), libstdc++6, libgcc-s1, libatomic1
Suggests: iproute2
Description: ${summary}
${description.map((line) => ` ${line}\n`).join('')}`,
  )
  writeFileSync(join(control, 'conffiles'), `${configFile}\n`)
  const scripts = {
    preinst: script(onWord(['install', 'upgrade'], refuseLaterCache(version))),
    postinst: script(onWord(['configure'], restartHub)),
    prerm: script(onWord(['remove'], `${refuseWhileInUse}${stopHub}`)),
    // A package that is removed may be purged when the node has long joined without it.
    postrm: script(
      onWord(['remove', 'purge'], forgetUnits),
      onWord(['purge'], `${refuseWhileInUse}${purge}`),
    ),
  }
  for (const [name, text] of Object.entries(scripts))
    writeFileSync(join(control, name), text, { mode: 0o755 })
  const file = join(out, `nodehub_${version}_${architecture.debian}.deb`)
  execFileSync('dpkg-deb', ['--root-owner-group', `-Z${compression}`, '--build', root, file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return file
}
