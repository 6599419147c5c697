/** Writes the dashboards: `node packaging/monitoring/main.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dashboards } from './dashboards.ts'

for (const [file, dashboard] of Object.entries(dashboards)) {
  writeFileSync(join(import.meta.dirname, file), `${JSON.stringify(dashboard, null, 2)}\n`)
}
