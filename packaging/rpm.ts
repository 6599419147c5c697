import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  forgetUnits,
  refuseLaterCache,
  refuseWhileInUse,
  restartHub,
  sayWhatStays,
  stopHub,
} from './maintainer-scripts.ts'
import { description, summary, type Build } from './package-facts.ts'
import { configFile, programFolder, type Payload } from './payload.ts'

const payloadFormats = { none: 'w0.gzdio', gzip: 'w6.gzdio', xz: 'w6.xzdio' } as const

/** Builds `nodehub-VERSION-1.ARCHITECTURE.rpm` with rpmbuild; returns its path. */
export function buildRpm(payload: Payload, { out, work, compression }: Build): string {
  const top = join(work, 'rpm')
  mkdirSync(top, { recursive: true })
  const { version, architecture } = payload
  const spec = join(top, 'nodehub.spec')
  writeFileSync(spec, specOf(payload))
  execFileSync(
    'rpmbuild',
    [
      '-bb',
      '--quiet',
      `--target=${architecture.rpm}-linux`,
      ...Object.entries({
        _topdir: top,
        _tmppath: top,
        _binary_payload: payloadFormats[compression],
        // rpm would strip Node, which takes its snapshot with it, and index what it stripped.
        __os_install_post: '%{nil}',
        debug_package: '%{nil}',
        _build_id_links: 'none',
      }).flatMap(([name, value]) => ['--define', `${name} ${value}`]),
      spec,
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const name = `nodehub-${version}-1.${architecture.rpm}.rpm`
  copyFileSync(join(top, 'RPMS', architecture.rpm, name), join(out, name))
  return join(out, name)
}

/** The libraries by their names in the loader, which are the same in every distribution. */
const libraries = [
  'libc.so.6(GLIBC_2.28)(64bit)',
  'libstdc++.so.6()(64bit)',
  'libgcc_s.so.1()(64bit)',
  'libatomic.so.1()(64bit)',
]

/** The last argument of rpm's scripts: how many versions are installed after the transaction. */
const lastRemoval = (part: string): string => `if [ "$1" = 0 ]; then\n${part}fi\n`

const specOf = ({ root, version, files }: Payload): string => `Name: nodehub
Version: ${version}
Release: 1
Summary: ${summary}
License: Apache-2.0
AutoReqProv: no
${libraries.map((library) => `Requires: ${library}\n`).join('')}
%description
${description.join('\n')}

%install
cp -a ${root}/. %{buildroot}/

%files
%defattr(-,root,root)
${programFolder}
%dir /etc/nodehub
%dir /usr/share/doc/nodehub
${files.map((path) => `${path === configFile ? '%config(noreplace) ' : ''}${path}\n`).join('')}
%pre
${refuseLaterCache(version)}
%post
${restartHub}
%preun
${lastRemoval(`${refuseWhileInUse}${stopHub}`)}
%postun
${lastRemoval(`${forgetUnits}${sayWhatStays}`)}
`
