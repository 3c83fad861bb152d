use super::sum;

#[test]
fn whole_disks_are_summed_and_partitions_and_loops_are_not() {
    let text = "\
 254       0 vda 100 5 2000 7 300 8 4000 9 0 1 2
 254       1 vda1 90 5 1900 7 290 8 3900 9 0 1 2
 259       0 nvme0n1 1 0 10 0 1 0 20 0 0 0 0
   7       0 loop0 9 9 9999 9 9 9 9999 9 9 9 9
broken line
";
    assert_eq!(sum(text, |name| name != "vda1"), Some((2010 * 512, 4020 * 512)));
    assert_eq!(sum("", |_| true), None, "where nothing is counted, nothing is said");
}
