/** A client was shown what it must not be shown, or not what it must be. */
export class Finding extends Error {
  readonly code = 'MODEL_FINDING'
}
