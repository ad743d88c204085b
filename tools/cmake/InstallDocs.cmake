# Run by `cmake --install`: copies the pages of `source` to `destination` and adapts their links to the installation:
# headers are under `to_include`, target descriptions under `to_data`, both relative to the pages' folder, and the
# examples next to the pages. Links to files that are not installed become plain text. `work`: a temporary folder.
file(REMOVE_RECURSE "${work}")
file(GLOB_RECURSE pages RELATIVE "${source}" "${source}/*.md")
foreach(page IN LISTS pages)
  file(READ "${source}/${page}" text)
  # The path from the page to the pages' folder: a link that leaves this folder begins with one more `../`.
  string(REGEX REPLACE "[^/]+/" "../" up "${page}")
  string(REGEX REPLACE "[^/]+$" "" up "${up}")
  string(REPLACE "." "\\." out "](${up}../")
  string(REGEX REPLACE "^\\]\\(" "\\\\]\\\\(" out "${out}")
  string(REGEX REPLACE "${out}sdk/(tenon/[^)#]*\\.hp*)" "](${up}${to_include}/\\1" text "${text}")
  string(REGEX REPLACE "${out}targets" "](${up}${to_data}/tenon/targets" text "${text}")
  string(REGEX REPLACE "${out}examples" "](${up}examples" text "${text}")
  string(REGEX REPLACE "\\[([^]]*)${out}(sdk|plugins|ir-ext|tests|tools|README)[^)]*\\)" "\\1" text "${text}")
  file(WRITE "${work}/${page}" "${text}")
endforeach()
file(INSTALL DESTINATION "${destination}" TYPE DIRECTORY FILES "${work}/")
