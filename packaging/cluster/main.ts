/** Writes the chart and the kustomize base: `node packaging/cluster/main.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { clusterPackages } from './chart.ts'

for (const [file, text] of Object.entries(clusterPackages())) {
  const path = join(import.meta.dirname, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
