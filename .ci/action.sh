#!/usr/bin/env bash
# The steps of action.yml. Inputs come as environment variables, so that no text of a user's is
# ever part of a script.
set -euo pipefail
venv="${RUNNER_TEMP:?}/counterfoil"

install() {
  "${COUNTERFOIL_PYTHON:?}" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${GITHUB_ACTION_PATH:?}"
}

judge() {
  local report="${COUNTERFOIL_REPORT:-conformance-report.json}" status=0 name
  local junit="${report%.json}.xml"
  local -a words sets
  if [[ -n "$COUNTERFOIL_RUNTIME" && -n "$COUNTERFOIL_VERIFIER" ]] ||
    [[ -z "$COUNTERFOIL_RUNTIME$COUNTERFOIL_VERIFIER" ]]; then
    echo "::error::give this action a runtime or a verifier, one of the two"
    echo "result=fail" >>"$GITHUB_OUTPUT"
    return 2
  fi
  if [[ -n "$COUNTERFOIL_VERIFIER" ]]; then
    words=(corpus --corpus "$COUNTERFOIL_CORPUS" --verifier "$COUNTERFOIL_VERIFIER")
  else
    words=(runtime --runtime "$COUNTERFOIL_RUNTIME")
    if [[ -d "$COUNTERFOIL_SCENARIOS" ]]; then
      words+=(--scenarios "$COUNTERFOIL_SCENARIOS")
    else
      read -ra sets <<<"$COUNTERFOIL_SCENARIOS"
      for name in "${sets[@]}"; do words+=(--set "$name"); done
    fi
  fi
  mkdir -p -- "$(dirname -- "$report")"
  rm -f -- "$report" "$junit" # a report of an earlier run says nothing of this one
  "$venv/bin/counterfoil" "${words[@]}" --report "$report" --junit "$junit" || status=$?
  # -P: what lies in the user's folder is not imported.
  "$venv/bin/python" -P -m counterfoil.conformance.action_summary "$report" "$status" \
    >>"$GITHUB_STEP_SUMMARY"
  {
    if ((status)); then echo "result=fail"; else echo "result=pass"; fi
    echo "report=$report"
    echo "junit=$junit"
  } >>"$GITHUB_OUTPUT"
  return "$status"
}

case "${1:-}" in
  install | judge) "$1" ;;
  *) echo "usage: action.sh install|judge" >&2 && exit 2 ;;
esac
