import type { ApiObject } from '../../../api/kube/object.ts'

/** One version of an object without its bytes. */
export interface Stored extends Omit<ApiObject, 'bytes'> {
  /** Row of its body. */
  readonly id: number
  readonly size: number
}
